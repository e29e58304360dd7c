"""Known-bad versions have to be blocked and known-good ones passed, by what was executed.

The cases are committed here and were not chosen by what the gate says of them. `blocked` is FAIL,
`passed` PASS or WARN; whatever else a verdict may be counts as neither. Encoders are torch modules
on real photographs and captions of the reference service; pairs run in children of their own.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import flows
from flows.examples.incident.requests import make_requests
from flows.examples.storefront import encoders, stamps
from flows.examples.storefront.classes import imagenet_names
from flows.examples.storefront.data import build_stamps
from services.compatibility.adapters.fitting import fit_adapters
from services.compatibility.adapters.pairs import AdapterPairs
from services.compatibility.common_space import Embedded, Meeting, measure_meetings
from services.compatibility.compare import EncoderVersion, compare_encoders
from services.compatibility.conventions import (
    STANDARDISATIONS,
    declared_standardisation,
    restandardise,
)
from services.compatibility.counterfactuals import check_inputs
from services.compatibility.pair_request import Part
from services.compatibility.pairs import PairPlan, measure_pairs
from services.fusion.training import Pairs, train_adapter
from tests.benchmarks.compat_versions import (
    CROPS,
    SEED,
    collapsed,
    exported,
    looked_up,
    noisy,
    pixels_of,
    preprocessing,
    read_captions,
    read_pictures,
    version_of,
    with_int8_text,
)
from tests.benchmarks.result import Machine, Options, Result
from tests.flows.examples.storefront.models import encode, pipeline
from tests.services.compatibility.engines import CONTRACT
from validators.compatibility.adapters import AdapterRecord
from validators.compatibility.estimates import share_of
from validators.compatibility.matrix import Cell, Version, fill
from validators.compatibility.measured import CompatibilityWord
from validators.compatibility.preprocessing import judge_inputs
from validators.compatibility.verdict import GATE, assess_compatibility
from validators.compatibility.words import CompatibilitySettings, word_of
from validators.contracts.digest import digest_bytes
from validators.contracts.engine import Precision
from validators.contracts.origin import VectorOrigin
from validators.contracts.ports import Tensors
from validators.contracts.verdict import Outcome, Verdict, conclude

Array = npt.NDArray[Any]
Feeds = list[tuple[Tensors, Tensors]]

GOOD_REQUESTS, BAD_REQUESTS = 300, 60
RARE_ITEMS = 1500
BAD, GOOD = "bad", "good"


@dataclass(frozen=True, slots=True)
class Judged:
    """One case: what is known of it, and what the gate said."""

    case: str
    known: str
    outcome: Outcome
    word: str
    wall_s: float
    memory_mb: float | None = None
    says: str = ""

    @property
    def right(self) -> bool:
        blocked, passed = self.outcome is Outcome.FAIL, self.outcome <= Outcome.WARN
        return blocked if self.known == BAD else passed


def run(options: Options) -> Result:
    machine = Machine.now()
    torch.set_num_threads(1)
    cases = [*_image_cases(), *_text_cases(), _rare_case()]
    notes = [f"{CROPS} crops of each of 24 photographs; captions of the reference service"]
    with tempfile.TemporaryDirectory() as folder:
        cases += _pair_cases(Path(folder))
        if stamps.FOLDER.is_dir():
            cases += _meeting_cases(Path(folder))
        else:
            notes.append("the stamps are not installed: pairs in a common space are left out")
    rows = [_row(item) for item in cases]
    ratios: dict[str, float | None] = {}
    for known, name in ((BAD, "blocked_known_bad"), (GOOD, "passed_known_good")):
        chosen = [item for item in cases if item.known == known]
        share = share_of(sum(item.right for item in chosen), len(chosen))
        ratios[f"{name}_share"] = share.value
        rows.append({"case": f"all known-{known}", "known": known,
                     "right": f"{sum(item.right for item in chosen)} of {len(chosen)}",
                     "low": round(share.low, 3), "high": round(share.high, 3)})  # fmt: skip
    ratios["seconds_per_pair"] = statistics.median(item.wall_s for item in cases)
    ratios["peak_memory_mb"] = max(item.memory_mb or 0 for item in cases)
    return Result("compat", machine, tuple(rows), ratios, tuple(notes))


def _row(item: Judged) -> dict[str, Any]:
    return {
        "case": item.case,
        "known": item.known,
        "outcome": item.outcome.value,
        "word": item.word,
        "right": item.right,
        "wall_s": round(item.wall_s, 1),
        "memory_mb": "" if item.memory_mb is None else round(item.memory_mb),
        "says": item.says[:90],
    }


# ------------------------------------------------------------------ versions of one encoder


def _image_cases() -> Iterator[Judged]:
    pictures = read_pictures()
    lite0, lite1 = encoders.efficientnet_lite0(), encoders.efficientnet_lite1()
    old = version_of(lite0, 224)
    same = [({"pixels": item}, {"pixels": item}) for item in pixels_of(pictures, 224)]
    pixels_240 = pixels_of(pictures, 240)
    larger: Feeds = [(one, {"pixels": two}) for (one, _), two in zip(same, pixels_240, strict=True)]
    imagenet = next(i for i in STANDARDISATIONS if i.name.startswith("ImageNet mean and"))
    declared = declared_standardisation(CONTRACT.inputs[0], preprocessing(224))

    yield _compare("identical", GOOD, old, version_of(lite0, 224), same)
    yield _compare("exported again (ONNX Runtime)", GOOD, old, exported(lite0), same)
    yield _compare("fine-tuned by noise of 0.1 %", GOOD, old, version_of(noisy(lite0), 224), same)
    yield _compare("channels swapped", BAD, old, version_of(lite0, 224, lambda x: x[:, ::-1]), same)
    yield _compare(
        "another mean and deviation", BAD, old,
        version_of(lite0, 224, lambda x: restandardise(x, imagenet, declared)), same,
    )  # fmt: skip
    yield _compare("the next network, nothing encoded again", BAD, old, version_of(lite1, 240),
                   larger)  # fmt: skip
    yield _compare("collapsed weights", BAD, old, version_of(collapsed(lite0), 224), same)


def _text_cases() -> Iterator[Judged]:
    texts = list(dict.fromkeys((*read_captions(), *imagenet_names())))
    full = encode("text", texts)["sentence_vector"]
    rounded = encode("text", texts, with_int8_text())["sentence_vector"]
    turn = np.linalg.qr(np.random.default_rng(SEED).normal(size=(full.shape[1],) * 2))[0]
    rotated = (full @ turn).astype(np.float32)
    feeds, old = _numbered(len(texts)), looked_up(full)
    yield _compare("MiniLM rounded to int8", GOOD, old, looked_up(rounded), feeds)
    yield _compare(
        "MiniLM rotated, adapter fitted", GOOD, old, looked_up(rotated), feeds, adapted=True
    )


def _rare_case() -> Judged:
    """NaN for one item in 500: three of 1,500."""
    random = np.random.default_rng(SEED)
    weight = random.normal(size=(16, 8)).astype(np.float32)
    items = random.normal(size=(RARE_ITEMS, 1, 16)).astype(np.float32)

    def answers(every: int) -> Array:
        values = items[:, 0] @ weight
        values[every - 1 :: every] = np.nan
        return values

    fine, rare = looked_up(items[:, 0] @ weight), looked_up(answers(500))
    return _compare("NaN for one item in 500", BAD, fine, rare, _numbered(RARE_ITEMS))


def _numbered(count: int) -> Feeds:
    """Items by their number, for versions whose answers are known."""
    return [({"row": np.array([[at]])}, {"row": np.array([[at]])}) for at in range(count)]


def _compare(
    case: str,
    known: str,
    old: EncoderVersion,
    new: EncoderVersion,
    feeds: Feeds,
    *,
    adapted: bool = False,
) -> Judged:
    """What the gate says; `adapted`: with an adapter fitted between the two before."""
    started = time.perf_counter()
    settings = CompatibilitySettings()
    if adapted:
        settings = replace(settings, adapters=(_adapter(old, new, feeds),))
    measured = compare_encoders(old, new, feeds)
    verdict = assess_compatibility(measured, settings)
    if "pixels" in feeds[0][0]:
        found = judge_inputs(check_inputs(old, new, feeds))
        verdict = conclude(GATE, [*verdict.findings, *found], examined=measured.items)
    words = [word_of(geometry, settings) for geometry in measured.geometries]
    word = ", ".join(item.value if item else "too few" for item in words)
    if any(item.outcome is Outcome.FAIL and not item.waivable for item in verdict.findings):
        word = CompatibilityWord.BLOCK.value
    took = time.perf_counter() - started
    return Judged(case, known, verdict.outcome, word, took, None, _says(verdict))


def _says(verdict: Verdict) -> str:
    """The worst finding; what nothing waives before what an approved plan may."""
    worst = max(
        verdict.findings,
        key=lambda item: (item.outcome.severity, not item.waivable),
        default=None,
    )
    return "" if worst is None else f"{worst.code}: {worst.measured}"


def _adapter(old: EncoderVersion, new: EncoderVersion, feeds: Feeds) -> AdapterRecord:
    """Fitted on these items and measured on those held out, as a release would."""
    before = np.concatenate([old.engine.run(one)["features"] for one, _ in feeds])
    after = np.concatenate([new.engine.run(two)["features"] for _, two in feeds])
    count = len(feeds)
    pairs = AdapterPairs(before, after, np.arange(count), np.zeros(count, np.int64))
    with tempfile.TemporaryDirectory() as folder:
        fitted = fit_adapters(pairs, Path(folder), subject="image")
    assert fitted.choice.chosen is not None, fitted.choice.reason
    some = digest_bytes(b"")
    origin = VectorOrigin(some, some)
    return AdapterRecord(
        "image", "features", origin, origin, before.shape[1], after.shape[1],
        fitted.choice.chosen, (), some, some, some, some,
    )  # fmt: skip


# ------------------------------------------------------------------ pairs of two encoders


def _pair_cases(folder: Path) -> Iterator[Judged]:
    names = "flows.examples.incident"
    texts = {v: Part(f"{names}.text:text_{v}", ("ids",)) for v in ("2_1_0", "2_1_1")}
    visions = {v: Part(f"{names}.vision:vision_{v}", ("pixels",)) for v in ("1_8_3", "1_8_4")}
    base = Path(flows.__file__).parents[1]
    for case, known, text, vision, count in (
        ("text 2.1.0 x vision 1.8.3, fp16", BAD, "2_1_0", "1_8_3", BAD_REQUESTS),
        ("text 2.1.1 x vision 1.8.4, fp16", GOOD, "2_1_1", "1_8_4", GOOD_REQUESTS),
    ):
        plan = PairPlan((texts[text],), (visions[vision],), f"{names}.fusion:Fusion", base)
        yield _pair(case, known, plan, make_requests(count), folder)
    models = "tests.benchmarks.compat_models"
    overflow = PairPlan(
        (Part(f"{models}:overflowing", ("ids",)),), (visions["1_8_4"],),
        f"{names}.fusion:Fusion", base,
    )  # fmt: skip
    yield _pair("fp16 overflow", BAD, overflow, make_requests(BAD_REQUESTS), folder)


def _pair(
    case: str, known: str, plan: PairPlan, requests: list[dict[str, Array]], folder: Path
) -> Judged:
    started = time.perf_counter()
    measured = measure_pairs(plan, requests, folder / "work", precisions=(Precision.FP16,))
    matrix = fill("bench", [Version("first", "1")], [Version("second", "1")], measured)
    return _cell(case, known, matrix.cell(0, 0), time.perf_counter() - started)


def _cell(case: str, known: str, cell: Cell, wall_s: float) -> Judged:
    worst = max(cell.findings, key=lambda item: item.outcome.severity, default=None)
    says = "" if worst is None else f"{worst.code}: {worst.measured}"
    memory = cell.measured.peak_bytes / 2**20 or None
    word = cell.word.value if cell.word else ""
    return Judged(case, known, cell.outcome, word, wall_s, memory, says)


def _meeting_cases(folder: Path) -> Iterator[Judged]:
    """Real pretrained encoders in one space: pictures find their captions through the live map."""
    build_stamps(folder / "stamps")
    lines = (folder / "stamps" / "manifest.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    captions = [row["text"] for row in rows]
    held_out = np.array([row["tags"]["split"] == "held-out" for row in rows])
    pictures = [(folder / "stamps" / row["image"]).read_bytes() for row in rows]
    live, following = pipeline(), pipeline("pipeline-next.yaml")
    started = time.perf_counter()
    images = [Embedded(encode("image", pictures, item)) for item in (live, following)]
    texts = [Embedded(encode("text", captions, item)) for item in (live, with_int8_text())]
    entry, said = live.branch("image").adapter, live.branch("text").adapter
    assert entry is not None and said is not None
    pairs = Pairs(images[0].outputs, texts[0].outputs["sentence_vector"], captions, held_out)
    classes: Callable[[], Array] = lambda: encode("text", imagenet_names())["sentence_vector"]  # noqa: E731
    trained = train_adapter(entry, pairs, classes)
    meeting = Meeting((trained.entry, trained.data), (said, None), (0, 0), captions, held_out)
    measured = measure_meetings(meeting, images, texts)
    wall_s = (time.perf_counter() - started) / len(measured)
    matrix = fill(
        "storefront",
        [Version("image", "lite0"), Version("image", "lite1")],
        [Version("text", "fp32"), Version("text", "int8")],
        measured,
    )
    for cell in matrix.cells:
        if (cell.row, cell.column) == (0, 0):
            continue  # the live pair is what the others are measured by
        seen = cell.measured.retrieval
        assert seen is not None
        names = f"{matrix.rows[cell.row].version} x {matrix.columns[cell.column].version}"
        judged = _cell(f"{names} in lite0's space", BAD if cell.row else GOOD, cell, wall_s)
        recall = seen.recall
        says = (f"recall@{seen.k} {seen.hits} of {seen.queries} ({recall.low:.2f} to "
                f"{recall.high:.2f}), live {seen.reference_hits}, refitted "
                f"{seen.refitted_hits}, chance {seen.chance:.2f}")  # fmt: skip
        yield replace(judged, says=says)
