from __future__ import annotations

from typing import Any

import pytest

from tests.validators.datasets import dataset, media, sample
from validators.contracts.digest import canonical_json, digest_bytes
from validators.contracts.errors import NotFound, Refused
from validators.contracts.verdict import Outcome
from validators.lineage.compare import compare_lineage
from validators.lineage.preprocessing import Preprocessing, Step
from validators.lineage.record import (
    RECORD_FORMAT,
    Checkpoint,
    DataChain,
    LineageRecord,
    read_record,
    read_summary,
    sample_lineage,
)
from validators.lineage.summary import summarise

DATA = dataset(
    *(sample(f"s{i:02}", media("image", brightness=140.0 + i), media("text")) for i in range(40))
)
IMAGE = Preprocessing("image", (Step("ingest", "upright-png", 1, (("max_side_px", 1024),)),))
RECORD = LineageRecord(
    RECORD_FORMAT,
    summarise(DATA, {"image": IMAGE.digest}),
    DataChain(
        digest_bytes(b"source"), "folder data", digest_bytes(b"raw"), "gdpr-default 1", DATA.digest
    ),
    (IMAGE,),
    (Checkpoint("image", digest_bytes(b"onnx"), "onnx"),),
)
FIRST_FORM: dict[str, Any] = {
    "samples": 40, "modalities": ["image", "text"], "channels": ["RGB"], "sensors": ["camera"],
    "lighting": ["day"], "sources": ["studio"],
    "brightness": {"mean": 142.25, "deviation": 3.5, "pictures": 40},
}  # fmt: skip


def test_a_record_survives_being_written_and_read() -> None:
    assert read_record(canonical_json(RECORD)) == RECORD


def test_the_digest_of_what_was_done_is_pinned() -> None:
    assert IMAGE.digest == PINNED


PINNED = "sha256:0a76dedae76d8d23791e95915cd84c4c0090a2dedb21ee74bf893ce010b135c9"


def test_the_first_form_is_still_read_and_compared_by_its_values() -> None:
    reference = read_summary(canonical_json(FIRST_FORM))
    assert reference.brightness is not None
    assert reference.brightness.mean == pytest.approx(142.25)
    assert reference.brightness.deviation == pytest.approx(3.5)
    verdict = compare_lineage(reference, summarise(DATA))
    assert [(item.code, item.outcome) for item in verdict.findings] == [
        ("reference-without-counts", Outcome.WARN)
    ]
    infrared = dataset(*(sample(f"s{i:02}", channels="RGB+IR") for i in range(40)))
    assert compare_lineage(reference, summarise(infrared)).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"[1]",
        b"{}",
        canonical_json({**FIRST_FORM, "more": 1}),
        canonical_json({"format": 3, "summary": {}}),
        canonical_json(RECORD).replace(b'"format":2', b'"format":7', 1),
        canonical_json({**FIRST_FORM, "samples": "forty"}),
    ],
)
def test_what_is_neither_form_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read_record(data, where="here")


def test_a_sample_s_lineage_is_put_together_from_what_was_written_once() -> None:
    found = sample_lineage(RECORD, DATA, "s07")
    assert (found.sensor, found.channels, found.lighting, found.source) == (
        "camera", "RGB", "day", "studio",
    )  # fmt: skip
    assert found.dataset == DATA.digest
    assert found.chain == RECORD.chain
    image, text = found.media
    assert (image.modality, image.preprocessing) == ("image", IMAGE.digest)
    assert (text.modality, text.preprocessing) == ("text", None)


def test_a_sample_that_is_not_there_and_a_record_of_other_data_are_told_apart() -> None:
    with pytest.raises(NotFound, match="no sample 'nobody'"):
        sample_lineage(RECORD, DATA, "nobody")
    with pytest.raises(Refused, match="another data set"):
        sample_lineage(RECORD, dataset(sample("s07")), "s07")
