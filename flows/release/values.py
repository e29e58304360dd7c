"""What the steps of a release hand to each other, as documents the journal can recall."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.bundle import BundledAsset, BundledEngine
from validators.contracts.dataset import Dataset
from validators.contracts.digest import Digest
from validators.contracts.encoder import EncoderContract
from validators.contracts.verdict import Verdict


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
class Certified:
    verdict: Verdict
    certificate: Digest


@dataclass(frozen=True, slots=True)
class Exported:
    """A checked ONNX, and the contract with its asset digests filled in."""

    contract: EncoderContract
    onnx: Digest


@dataclass(frozen=True, slots=True)
class EngineBuild:
    """One engine of the release; `cached` where its key had been built before."""

    engine: BundledEngine
    cached: bool


@dataclass(frozen=True, slots=True)
class Embedded:
    """A data set run through an encoder: the drift window document and the vectors by sample."""

    window: Digest  # safetensors DriftWindow
    vectors: Digest  # safetensors: one matrix an output
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Learned:
    """What was fitted on the data: adapters and the catalogue, with the gate on their quality."""

    assets: tuple[BundledAsset, ...]
    adapters: tuple[tuple[str, str], ...]  # modality → adapter kind that was used
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Rehearsed:
    verdict: Verdict
    samples: int
