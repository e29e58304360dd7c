"""What the steps of a release hand to each other, as documents the journal can recall."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.bundle import BundledAsset, BundledEngine
from validators.contracts.dataset import Dataset
from validators.contracts.digest import Digest
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import Precision
from validators.contracts.pipeline import Branch
from validators.contracts.verdict import Verdict
from validators.rehearsal.verdict import PairScores


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """How one release is to run.

    `approve_as` are the people of an unattended approval; `deploy` False stops after the review.
    """

    author: str
    approve_as: tuple[str, ...] = ()
    deploy: bool = True


@dataclass(frozen=True, slots=True)
class Ingested:
    """Raw, normalised samples in the quarantine."""

    dataset: Dataset
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Deidentified:
    """Samples that may leave the quarantine, and where the counts of what was removed lie."""

    dataset: Dataset
    report: Digest


@dataclass(frozen=True, slots=True)
class Exported:
    """A checked ONNX, and the contract with its asset digests filled in."""

    contract: EncoderContract
    onnx: Digest


@dataclass(frozen=True, slots=True)
class Baked:
    """A checked ONNX that carries a precision."""

    onnx: Digest


@dataclass(frozen=True, slots=True)
class PrecisionChoice:
    """The precision that an encoder is deployed in, and the ONNX to compile for it.

    `table` is the document of the whole measurement. Where the verdict stops, the precision is the
    file's first: nothing is built with it unless somebody waives what stopped.
    """

    precision: Precision
    onnx: Digest
    table: Digest
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class EngineBuild:
    """One engine of the release; `cached` where its key had been built before."""

    engine: BundledEngine
    cached: bool


@dataclass(frozen=True, slots=True)
class Learned:
    """What was fitted on the data, with the gate on its quality.

    `branches` carry the adapters that were made; `window` is a DriftWindow document; `scores` are
    the alignment of matched and of shuffled pairs.
    """

    assets: tuple[BundledAsset, ...]
    branches: tuple[Branch, ...]
    window: Digest
    scores: PairScores
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Probe:
    """One request that rehearses a service: media by digest, audio in the quarantine."""

    id: str
    image: Digest | None = None
    text: str | None = None
    audio: Digest | None = None


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """How the assembled service did, before it gets traffic."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """One finished release, behind the reference `releases/<bundle>`: what later ones compare with.

    `identity` names what was released; `baseline` the bundle it was compared with.
    """

    bundle: Digest
    identity: Digest
    baseline: Digest | None
    pipeline: Digest  # canonical JSON of the Pipeline value
    dataset: Digest  # of the de-identified Dataset document
    lineage: Digest  # LineageRecord document; a LineageSummary of the first form in old ones
    window: Digest  # DriftWindow, safetensors
    probes: Digest  # the requests that rehearse and probe this release
    certificate: Digest
    verdicts: Digest
