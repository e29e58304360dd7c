"""When enough branches have answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fusion.policies import (
    POLICIES,
    FusedBranch,
    FusionRound,
    Ready,
    Starved,
    Wait,
)
from validators.contracts.errors import Unsupported
from validators.contracts.pipeline import Fusion

DEADLINE = 1000
EVERY = ("image", "text", "audio")


def start(policy: str, *, threshold: float = 0.5, quorum: int = 2) -> FusionRound:
    branches = [
        FusedBranch("image", 3.0, 200),
        FusedBranch("text", 1.0, DEADLINE),
        FusedBranch("audio", 2.0, 600),
    ]
    return FusionRound(Fusion(policy, threshold, quorum), branches, DEADLINE)


# Events are (time, what, branch); the last column is the decision at the last time.
TABLE = [
    ("all", [], 0, Wait(200)),
    ("all", [("+", "image"), ("+", "text"), ("+", "audio")], 5, Ready(EVERY, False)),
    ("all", [("+", "text"), ("+", "audio")], 199, Wait(200)),
    ("all", [("+", "text"), ("+", "audio")], 200, Ready(("text", "audio"), True)),
    ("all", [("-", "image"), ("+", "text"), ("+", "audio")], 5, Ready(("text", "audio"), True)),
    ("all", [], DEADLINE, Starved(EVERY, ())),
    ("all", [("-", "image")], DEADLINE, Starved(("text", "audio"), ("image",))),
    ("any", [], 0, Wait(200)),
    ("any", [("+", "audio")], 5, Ready(("audio",), False)),
    ("any", [("-", "image"), ("+", "audio")], 5, Ready(("audio",), True)),
    ("quorum", [("+", "audio")], 5, Wait(200)),
    ("quorum", [("+", "audio"), ("+", "text")], 5, Ready(("text", "audio"), False)),
    ("quorum", [("-", "audio"), ("-", "text")], 5, Starved((), ("text", "audio"))),
    ("weighted", [("+", "image")], 5, Ready(("image",), False)),
    ("weighted", [("+", "text")], 5, Wait(200)),
    ("weighted", [("+", "text"), ("+", "audio")], 5, Ready(("text", "audio"), False)),
    ("weighted", [("-", "image"), ("-", "audio")], 5, Starved((), ("image", "audio"))),
    ("ordered", [("+", "audio")], 5, Wait(200)),
    ("ordered", [("+", "audio"), ("+", "image")], 5, Ready(("image",), False)),
    ("ordered", [("+", "audio"), ("-", "image")], 5, Wait(1000)),
    ("ordered", [("+", "audio"), ("-", "image"), ("-", "text")], 5, Ready(("audio",), True)),
    ("ordered", [("-", "audio"), ("-", "image"), ("-", "text")], 5, Starved((), EVERY)),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "events", "now_ns", "decision"), TABLE)
def test_a_policy_decides_by_what_has_come(
    policy: str, events: list[tuple[str, str]], now_ns: int, decision: object
) -> None:
    fusion_round = start(policy)
    for what, name in events:
        (fusion_round.arrived if what == "+" else fusion_round.failed)(name)
    assert fusion_round.decide(now_ns) == decision


def test_a_quorum_of_more_than_was_sent_is_all_of_it() -> None:
    fusion_round = FusionRound(Fusion("quorum", quorum=3), [FusedBranch("text", 1, 9)], 9)
    fusion_round.arrived("text")
    assert fusion_round.decide(0) == Ready(("text",), False)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(Unsupported):
        FusionRound(Fusion("majority"), [], 0)


events = st.lists(
    st.tuples(
        st.integers(0, DEADLINE),
        st.sampled_from(["arrived", "failed"]),
        st.sampled_from(["image", "text", "audio"]),
    ),
    max_size=6,
)


@given(st.sampled_from(POLICIES), events, st.floats(0, 1), st.integers(1, 4))
def test_a_round_always_ends_by_its_deadline_and_uses_only_what_came(
    policy: str, happened: list[tuple[int, str, str]], threshold: float, quorum: int
) -> None:
    fusion_round = start(policy, threshold=threshold, quorum=quorum)
    settled: dict[str, str] = {}
    for at_ns, what, name in sorted(happened, key=lambda event: event[0]):
        if settled.setdefault(name, what) == what:
            getattr(fusion_round, what)(name)
        decision = fusion_round.decide(at_ns)
        assert decision == fusion_round.decide(at_ns)
        if isinstance(decision, Wait):
            assert decision.until_ns > at_ns
        elif isinstance(decision, Ready):
            assert decision.used
            assert all(settled[used] == "arrived" for used in decision.used)
    assert not isinstance(fusion_round.decide(DEADLINE), Wait)
