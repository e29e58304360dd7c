"""What a release says of encoders that the champion has and it has not."""

from __future__ import annotations

from flows.release.baseline import lost_encoders
from flows.release.values import Exported
from tests.validators.contracts.test_digest import BUNDLE
from validators.contracts.verdict import Outcome


def test_an_encoder_that_the_champion_has_may_not_vanish_unseen() -> None:
    kept = {item.contract.name: Exported(item.contract, item.onnx) for item in BUNDLE.encoders}
    assert list(lost_encoders(None, kept)) == []
    assert list(lost_encoders(BUNDLE, kept)) == []
    contract = BUNDLE.encoders[0].contract
    name = contract.name
    renamed = {f"{name}-two": kept[name], **{key: kept[key] for key in kept if key != name}}
    ((lost, verdict),) = lost_encoders(BUNDLE, renamed)
    assert (lost, verdict.outcome) == (name, Outcome.FAIL)
    assert verdict.findings[0].limit == f"version {contract.version}"
