"""Suites as files beside the pipeline file: `quality/samples.json`, `quality/image.json` ...

A name may not lead out of the folder, by a link neither; files are read within their bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from infra.files import write_atomically
from services.ingest.enclosure import FileRefused, read_inside
from validators.contracts.errors import BadInput, NotFound
from validators.contracts.pipeline import Pipeline
from validators.quality.suite_file import (
    MAX_FILE_BYTES,
    SuiteFileError,
    SuiteProblem,
    read_suite,
    write_suite,
)
from validators.quality.words import SAMPLES, Suite

USUAL_FOLDER = "quality"
MAX_FILES = 64
_SETTING = "gates.quality.suites"
_SUFFIX = ".json"


def suite_names(pipeline: Pipeline) -> tuple[str, ...]:
    """What a folder of suites may hold: the samples', and one for each declared modality.

    Raises:
        BadInput: a modality has the name of the samples' suite.
    """
    modalities = tuple(sorted(item.name for item in pipeline.modalities))
    if SAMPLES in modalities:
        raise BadInput(
            f"a modality cannot be called {SAMPLES!r}",
            where=f"modalities.{SAMPLES}",
            remedy="Rename it: that is the name of the suite over all samples.",
        )
    return (SAMPLES, *modalities)


def read_folder(pipeline: Pipeline, base: Path) -> dict[str, Suite]:
    """The suites of the pipeline's folder by name; none where it names no folder.

    `base` is the folder of the pipeline file.

    Raises:
        NotFound: there is no such folder.
        BadInput: the folder lies elsewhere. SuiteFileError: with all that is wrong in the files.
    """
    if pipeline.gates.quality.suites is None:
        return {}
    folder = folder_of(pipeline, base)
    if not folder.is_dir():
        raise NotFound(
            f"there is no folder of quality suites called {pipeline.gates.quality.suites!r}",
            where=_SETTING,
            remedy="Write it: modalgate quality init PIPELINE",
        )
    files = sorted(path.name for path in folder.iterdir() if path.name.endswith(_SUFFIX))
    if len(files) > MAX_FILES:
        what = f"There are {len(files)} files; at most {MAX_FILES} are read."
        raise SuiteFileError([SuiteProblem(pipeline.gates.quality.suites, "the folder", what)])
    return _read_all(folder, files, suite_names(pipeline))


def write_folder(
    pipeline: Pipeline, base: Path, suites: Mapping[str, Suite], *, force: bool
) -> tuple[list[str], list[str]]:
    """Write suites into the pipeline's folder: the names that were written, and those kept.

    A file that is there is kept unless `force` says otherwise.

    Raises:
        BadInput: the folder lies elsewhere, or cannot be made.
    """
    folder = folder_of(pipeline, base)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"the folder of suites cannot be made: {error.strerror}",
            where=str(folder),
            remedy="Make it by hand, or name another in gates.quality.suites.",
        ) from error
    written, kept = list[str](), list[str]()
    for name, suite in suites.items():
        path = folder / f"{name}{_SUFFIX}"
        if (path.exists() or path.is_symlink()) and not force:
            kept.append(name)
        else:
            write_atomically(path, write_suite(suite))
            written.append(name)
    return written, kept


def folder_of(pipeline: Pipeline, base: Path) -> Path:
    """The folder of suites, below the pipeline file's.

    Raises:
        BadInput: an absolute name, one that climbs, or a link that leads out.
    """
    name = pipeline.gates.quality.suites or USUAL_FOLDER
    written = PurePosixPath(name)
    folder = base / written
    if written.is_absolute() or ".." in written.parts or not _inside(folder, base):
        raise BadInput(
            f"{_SETTING} leads out of the pipeline file's folder",
            where=_SETTING,
            remedy="Name a folder beside the pipeline file: quality.",
        )
    return folder


def _inside(folder: Path, base: Path) -> bool:
    try:
        return folder.resolve().is_relative_to(base.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no file can have
        return False


def _read_all(folder: Path, files: Iterable[str], known: tuple[str, ...]) -> dict[str, Suite]:
    suites: dict[str, Suite] = {}
    problems: list[SuiteProblem] = []
    for file in files:
        name = file.removesuffix(_SUFFIX)
        place = f"{folder.name}/{file}"
        if name not in known:
            what = (
                "The pipeline declares no modality of this name. Remove the file, or name it after "
                f"one of: {', '.join(known)}."
            )
            problems.append(SuiteProblem(place, "the file", what))
            continue
        try:
            data = read_inside(folder, file, MAX_FILE_BYTES)
            suites[name] = read_suite(data, file=place, name=name)
        except FileRefused as refusal:
            problems.append(SuiteProblem(place, "the file", _sentence(refusal)))
        except SuiteFileError as error:
            problems += error.problems
    if problems:
        raise SuiteFileError(problems)
    return suites


_SENTENCES = {
    "path-outside-folder": "It is a link that leads out of the folder. Put the file itself there.",
    "file-too-large": f"It has more than {MAX_FILE_BYTES} bytes. Keep suites small.",
    "not-a-file": "It is no regular file. Put a file there.",
    "missing-file": "It is a link that leads nowhere. Put the file itself there.",
}


def _sentence(refusal: FileRefused) -> str:
    return _SENTENCES.get(refusal.reason, "It cannot be read. Look at its permissions.")
