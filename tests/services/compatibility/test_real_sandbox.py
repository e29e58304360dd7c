"""Real pairs in the sandbox: two image networks of one width, one text network rounded to int8."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from flows.release.sources import read_asset
from services.compatibility.sandbox import Examination, VersionSource, examine
from services.engines.export.encoder import export_encoder
from services.preprocess import make_preprocessor
from validators.compatibility.layer_report import report_layers
from validators.compatibility.layer_verdict import assess_layers
from validators.compatibility.sandboxed import SandboxMeasurement
from validators.contracts.digest import Digest, digest_bytes
from validators.contracts.engine import Precision
from validators.contracts.pipeline import EncoderEntry, EncoderSource, SourceKind
from validators.contracts.pipeline_file import parse_pipeline
from validators.contracts.verdict import Outcome

storefront = pytest.importorskip("flows.examples.storefront.encoders")
pictures = pytest.importorskip("skimage.data")

pytestmark = pytest.mark.heavy

FOLDER = Path(str(storefront.__file__)).parent
PLAN = Examination(required=(Precision.FP32, Precision.BF16), planned=(Precision.FP16,))
SENTENCES = [
    f"{how} {what} {where}"
    for how in ("a small", "an old", "one bright red", "the very last")
    for what in ("cat", "bicycle")
    for where in ("in the garden", "beside a lake at night")
]


class Assets:
    """Files of preprocessing, by their digests."""

    def __init__(self) -> None:
        self._data: dict[Digest, bytes] = {}

    def put(self, data: bytes) -> Digest:
        digest = digest_bytes(data)
        self._data[digest] = data
        return digest

    def get(self, digest: Digest) -> bytes:
        return self._data[digest]


Make = Callable[..., VersionSource]


@pytest.fixture(scope="module")
def assets() -> Assets:
    return Assets()


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory, assets: Assets) -> Make:
    work = tmp_path_factory.mktemp("exports")

    def make(pipeline: str, encoder: str, factory: str = "") -> VersionSource:
        entry = parse_pipeline((FOLDER / pipeline).read_text(), path=pipeline).encoder(encoder)
        if factory:
            entry = _from(entry, factory)
        kept = tuple(
            (name, assets.put(read_asset(where, FOLDER))) for name, where in entry.asset_files
        )
        preprocess = dataclasses.replace(entry.contract.preprocess, assets=kept)
        contract = dataclasses.replace(entry.contract, preprocess=preprocess)
        return VersionSource(contract, export_encoder(entry, FOLDER, work), entry.source, FOLDER)

    return make


def _from(entry: EncoderEntry, factory: str) -> EncoderEntry:
    source = EncoderSource(SourceKind.TORCH, f"flows.examples.storefront.encoders:{factory}")
    contract = dataclasses.replace(entry.contract, version="1.0.1")
    return dataclasses.replace(entry, source=source, contract=contract)


def compare(
    old: VersionSource, new: VersionSource, raw: list[bytes] | list[str], assets: Assets, work: Path
) -> SandboxMeasurement:
    sides = [make_preprocessor(side.contract.preprocess, assets.get) for side in (old, new)]
    feeds = [(sides[0](item), sides[1](item)) for item in raw]
    measured = examine(old, new, feeds, work, plan=PLAN, read_asset=assets.get)
    for side in (measured.old, measured.new):
        assert side is not None
        print(  # the figures of this pair, with -s
            side.version,
            f"{side.wall_s:.1f} s",
            f"{side.peak_bytes >> 20} MiB",
            [
                (t.runtime, t.precision.value, len(t.layers), round(t.wall_s, 2))
                for t in side.traces
            ],
        )
    return measured


def quarters() -> list[bytes]:
    found = []
    for load in (pictures.astronaut, pictures.chelsea, pictures.coffee, pictures.rocket):
        picture = Image.fromarray(load()[..., :3])
        width, height = picture.size
        for x in (0, width // 2):
            for y in (0, height // 2):
                stream = io.BytesIO()
                picture.crop((x, y, x + width // 2, y + height // 2)).save(stream, "PNG")
                found.append(stream.getvalue())
    return found


def test_two_image_networks_part_at_once_and_are_finite_in_every_precision(
    version: Make, assets: Assets, tmp_path: Path
) -> None:
    measured = compare(
        version("pipeline.yaml", "image"), version("pipeline-next.yaml", "image"),
        quarters(), assets, tmp_path,
    )  # fmt: skip
    verdict = assess_layers(measured)
    codes = {item.code for item in verdict.findings if item.outcome > Outcome.PASS}

    assert verdict.outcome is Outcome.WARN
    assert {"layer-linf-drift", "built-differently"} <= codes
    assert not codes & {"layer-not-finite", "version-failed", "precision-not-computed"}
    by_runtime = {
        table.runtime: table.parting.first.new
        for table in report_layers(measured).drifts
        if table.parting is not None and table.precision is Precision.FP32
    }
    assert by_runtime["torch"].startswith("stem")
    found = {item.what for item in measured.differences}
    assert "parameters" in found


def test_a_text_network_and_its_rounded_self_agree_but_for_their_weights(
    version: Make, assets: Assets, tmp_path: Path
) -> None:
    measured = compare(
        version("pipeline.yaml", "text"), version("pipeline.yaml", "text", "minilm_text_int8"),
        SENTENCES, assets, tmp_path,
    )  # fmt: skip
    verdict = assess_layers(measured)
    assert verdict.outcome <= Outcome.WARN
    assert measured.new.graph is not None
    (embedding,) = measured.new.graph.outputs
    assert (embedding.pooling, embedding.normalised) == ("masked mean", True)
    (table,) = (
        item for item in report_layers(measured).drifts
        if (item.runtime, item.precision) == ("torch", Precision.FP32)
    )  # fmt: skip
    last = table.layers[-1]
    assert last.cosine is not None and last.cosine > 0.99
