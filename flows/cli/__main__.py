"""`python -m flows.cli`, the same as `modalgate`."""

from flows.cli.main import run

run()
