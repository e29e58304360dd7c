from __future__ import annotations

import dataclasses

import pytest

from flows.lineage.facts import digests_of, preprocessing_of
from services.deidentify.policy import load_policy
from services.ingest import normalise, recipes
from tests.validators.datasets import dataset, media, sample
from validators.contracts.errors import Unsupported

POLICY = load_policy("gdpr-default")
RAW = dataset(sample("a", media("image"), media("text")), sample("b", media("audio")))


def test_what_was_done_to_each_modality_is_named_step_by_step() -> None:
    found = {item.modality: [step.name for step in item.steps] for item in
             preprocessing_of(RAW, POLICY)}  # fmt: skip
    assert found == {
        "audio": ["mono-pcm-wav", "hash"],
        "image": ["upright-rgb-png", "blur-permute"],
        "text": ["nfc-plain-text", "pseudonymise"],
    }


def test_the_same_steps_have_the_same_digest_and_another_policy_another_one() -> None:
    stricter = dataclasses.replace(POLICY, version=POLICY.version + 1)
    before, after = (digests_of(preprocessing_of(RAW, item)) for item in (POLICY, stricter))
    assert digests_of(preprocessing_of(RAW, POLICY)) == before
    assert all(before[name] != after[name] for name in before)


def test_a_setting_of_ingest_is_part_of_its_step() -> None:
    settings = dict(recipes.ingest_step("image/png").settings)
    assert settings == {"max_side_px": normalise.MAX_SIDE_PX}


def test_a_form_that_no_recipe_names_is_its_own_step() -> None:
    assert recipes.ingest_step("application/x-new").name == "application/x-new"


def test_a_modality_that_the_policy_does_not_cover_is_refused() -> None:
    with pytest.raises(Unsupported, match="thermal"):
        preprocessing_of(dataset(sample("a", media("thermal"))), POLICY)
