"""The shape of the `ingest` section of the user's file: how recordings become samples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from validators.contracts.pipeline_keys import Section, key

TRACKS = ("video", "audio", "document", "events", "sensors")
"""The tracks that a recording may have, first the one that the others are put in step with."""

ToleranceMs = Annotated[float, Field(gt=0, le=60_000, json_schema_extra={"x-unit": "ms"})]


class IngestSection(Section):
    """How recordings (rows with video, documents, events or sensors) become aligned samples."""

    sample_every_ms: float = key(
        "Time between the samples that are taken of a recording.",
        1000.0, unit="ms", ge=1, le=3_600_000,
    )  # fmt: skip
    offsets: Literal["repair", "refuse"] = key(
        "What is done with a track that is seen to be out of step by more than its tolerance: "
        "repair shifts it, refuse makes the recording unreadable.",
        "repair",
    )  # fmt: skip
    tolerance_ms: dict[Literal[TRACKS], ToleranceMs] = key(  # type: ignore[valid-type]
        "How far from a moment an item of a track may be and still belong to it. Left out: "
        "video 33, audio 40, document 200, events 50, sensors 10.",
        {}, unit="ms",
    )  # fmt: skip
