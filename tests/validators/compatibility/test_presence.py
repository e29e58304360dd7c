"""What is missing on one side is said, and only what is lost stops."""

from __future__ import annotations

from validators.compatibility.presence import lost_encoder, new_encoder
from validators.contracts.verdict import Outcome


def test_a_lost_encoder_stops_until_somebody_waives_it() -> None:
    finding = lost_encoder("audio", "1.2.0")
    assert (finding.outcome, finding.waivable) == (Outcome.FAIL, True)
    assert finding.name == "compatibility/encoder-lost/audio"


def test_a_new_encoder_is_a_warning() -> None:
    assert new_encoder("audio", "1.2.0").outcome is Outcome.WARN
