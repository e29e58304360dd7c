"""Exports one encoder in a child process: a factory is code that may hang, crash or eat memory."""

from __future__ import annotations

from pathlib import Path

from services.children.phases import Progress
from services.children.process import Cancel, Limits, run_child
from services.children.scratch import scratch
from services.engines.requests import EXPORT_ONNX, EXPORT_TORCH, ExportRequest
from validators.contracts.digest import digest_value, short
from validators.contracts.pipeline import EncoderEntry, SourceKind


def export_encoder(
    entry: EncoderEntry,
    base: Path,
    workdir: Path,
    *,
    limits: Limits | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Path:
    """The checked ONNX file of an encoder, `workdir/<name>-<digest of the entry>.onnx`.

    The same source gives the same bytes in every process. `base` is the folder that an ONNX path,
    or a torch module beside the pipeline file, is relative to.

    Raises:
        BadInput: the source or its contract is wrong (see `export.checked`); or an error of
        `services.children.errors` where the child was stopped.
    """
    with scratch(workdir) as folder:
        out = folder / "checked.onnx"
        request = ExportRequest(entry, str(base.resolve()), str(out))
        task = EXPORT_TORCH if entry.source.kind is SourceKind.TORCH else EXPORT_ONNX
        run_child(
            task, request, folder,
            subject=entry.name, limits=limits, progress=progress, cancel=cancel,
        )  # fmt: skip
        name = short(digest_value("encoder-entry", entry))
        return out.replace(workdir / f"{entry.name}-{name}.onnx")
