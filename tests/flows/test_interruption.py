"""A signal ends a flow at its next sign of progress, and only there."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from flows.interruption import Interrupted, interruptible, told_to_end
from flows.progress import reporter


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_flow_at_its_next_sign_of_progress(number: signal.Signals) -> None:
    done: list[str] = []
    with pytest.raises(Interrupted), interruptible():
        reporter().started("first")
        os.kill(os.getpid(), number)
        done.append("the piece of work that was under way")
        assert told_to_end()
        reporter().finished("first")
        reporter().advanced("second", 1, 2)
    assert done == ["the piece of work that was under way"]


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with interruptible():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert not told_to_end()


def test_a_flow_of_another_thread_leaves_signals_alone() -> None:
    seen: list[object] = []

    def work() -> None:
        with interruptible():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]
