"""Benchmarks: every performance claim, against a peer or a baseline in the same run.

    python -m tests.benchmarks NAME --json FILE
    python -m tests.benchmarks all

A benchmark is a module here with `run(options) -> Result`; `NAMES` lists them.
"""
