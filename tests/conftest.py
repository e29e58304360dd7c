"""What tests of several packages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flows.home import Home
from flows.orchestration import prepare


@pytest.fixture(scope="session")
def prefect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One orchestrator for the whole session: it takes seconds to start."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("prefect")))
        prepare(Home(tmp_path_factory.mktemp("prepared")))
        from prefect.settings import PREFECT_API_URL
        from prefect.testing.utilities import prefect_test_harness

        with prefect_test_harness(server_startup_timeout=180):
            url = PREFECT_API_URL.value()
            assert url
            yield url
