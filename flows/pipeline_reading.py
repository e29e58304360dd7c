"""The user's pipeline file from disk: bounded, and every failure told as one of the file's."""

from __future__ import annotations

from pathlib import Path

from validators.contracts.errors import BadInput, NotFound
from validators.contracts.pipeline import Pipeline
from validators.contracts.pipeline_file import parse_pipeline

MAX_PIPELINE_BYTES = 1024 * 1024


def read_pipeline(path: Path) -> Pipeline:
    """The user's file. Raises BadInput (all its problems at once), NotFound."""
    try:
        if path.stat().st_size > MAX_PIPELINE_BYTES:
            raise BadInput(
                f"a pipeline file may have {MAX_PIPELINE_BYTES} bytes at most",
                where=str(path),
                remedy="Move data out of the file: it describes a service, it does not hold it.",
            )
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            "the pipeline file is not UTF-8 text", where=str(path), remedy="Save it as UTF-8."
        ) from error
    except OSError as error:
        raise NotFound(
            f"the pipeline file cannot be read: {error.strerror}",
            where=str(path),
            remedy="Name an existing file, e.g. flows/examples/storefront/pipeline.yaml.",
        ) from error
    return parse_pipeline(text, path=str(path))
