from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from services.deidentify.policy import POLICY_FOLDER, Operation, load_policy, parse_policy
from validators.contracts.errors import BadInput, NotFound, Unsupported


def changed(**image: object) -> bytes:
    document = yaml.safe_load((POLICY_FOLDER / "gdpr-default.yaml").read_bytes())
    document["modalities"]["image"].update(image)
    return yaml.safe_dump(document).encode()


@pytest.mark.parametrize(
    ("modality", "gdpr", "operation"),
    [
        ("image", "Art. 9(1)", Operation.BLUR_PERMUTE),
        ("audio", "Recital 26", Operation.HASH),
        ("text", "Art. 4(1)", Operation.PSEUDONYMISE),
    ],
)
def test_the_default_policy_names_the_clause_of_each_modality(
    modality: str, gdpr: str, operation: Operation
) -> None:
    rule = load_policy("gdpr-default").rule(modality)
    assert (rule.gdpr, rule.operation) == (gdpr, operation)
    assert rule.pipl
    assert rule.visible


def test_captions_get_labels_and_the_default_uuids() -> None:
    found = {
        name: dict(load_policy(name).rule("text").options)["replacement"]
        for name in ("gdpr-default", "gdpr-captions")
    }
    assert found == {"gdpr-default": "uuid", "gdpr-captions": "label"}


def test_a_modality_without_a_rule_is_refused() -> None:
    with pytest.raises(Unsupported):
        load_policy("gdpr-default").rule("thermal")


@pytest.mark.parametrize("name", ["none-such", "../policy", "", "GDPR", "gdpr-default.yaml"])
def test_an_unknown_policy_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(NotFound) as refusal:
        load_policy(name)
    assert "gdpr-default" in refusal.value.remedy


def test_policies_differ_by_what_they_do(tmp_path: Path) -> None:
    original = load_policy("gdpr-default")
    assert parse_policy(changed()).digest == original.digest
    assert parse_policy(changed(options={"threshold": 0.3})).digest != original.digest


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[1]",
        b"name: [",
        b"\xff\xff",
        b"name: x\nversion: 1\nmodalities: {}",
        changed(operation="delete"),
        changed(gdpr=""),
        changed(colour="red"),
        changed(options={"blur": 0.03}),  # too little: most faces stay recognisable
        changed(options={"blur": "much"}),
        changed(options={"replacement": "uuid"}),
        b"x" * 70_000,
    ],
)
def test_what_is_no_policy_is_refused(text: bytes) -> None:
    with pytest.raises(BadInput):
        parse_policy(text)
