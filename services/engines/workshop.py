"""The workshop: builds an engine once per key, keeps it with its sealed manifest, verifies it.

In the store, references name what exists; they are written last, so a crash leaves at most an
object that nothing points to:

    engines/<key>                   → sealed manifest of the build, state BUILT
    engines-verified/<key>/<host>   → sealed manifest of that same build, VERIFIED on that host

A verdict belongs to one build: the verified manifest names the engine's digest, and is made again
when the build behind `engines/<key>` is another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from services.children.phases import Progress
from services.children.process import Cancel, Limits, run_child
from services.children.scratch import scratch
from services.engines.backends.catalogue import backend
from services.engines.locks import key_lock
from services.engines.requests import BUILD, BuildRequest
from services.engines.shelf import Description, ObtainedEngine, Shelf
from services.engines.verification import VerifiedEngine, verify_engine
from validators.contracts.digest import Digest
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import EngineManifest, EngineSpec, EngineState, Tolerance
from validators.contracts.errors import BadInput
from validators.contracts.pipeline import EncoderSource
from validators.contracts.ports import ObjectStore, Signer, Tensors, Verifier
from validators.contracts.verdict import Waiver


class EngineWorkshop:
    """Builds and verifies engines into an object store.

    `locks` and `workdir` are folders of this machine; builders that share a store but not `locks`
    may both build, and then the first reference wins.
    """

    def __init__(
        self,
        store: ObjectStore,
        signer: Signer,
        verifier: Verifier,
        locks: Path,
        workdir: Path,
        *,
        limits: Limits | None = None,
    ) -> None:
        self._shelf = Shelf(store, signer, verifier)
        self._locks = locks
        self._workdir = workdir
        self._limits = limits or Limits()

    def obtain(
        self,
        spec: EngineSpec,
        onnx: Digest,
        contract: EncoderContract,
        *,
        source_onnx: Digest | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> ObtainedEngine:
        """The engine of this spec: as it lies in the store, or built now. BUILT, never VERIFIED.

        `onnx` is an object of the store that `export_encoder` made, or one that a precision was
        baked into: then `source_onnx` is the one it was baked from.

        Raises:
            BadInput, Unsupported: the backend cannot take this model, precision or target.
            ChildCrashed, ChildTimedOut, ChildTooLarge, BuildCancelled: nothing was kept.
            Unavailable: the store is down.
        """
        if spec.onnx != onnx:
            raise BadInput("the spec is of another ONNX file", where=spec.encoder)
        backend(spec.backend).check(spec)
        with key_lock(self._locks, spec.key, cancel):
            about = Description.of(contract, spec, source_onnx)
            found = self._shelf.built(spec, about)
            if found is not None:
                return found
            return self._build(spec, about, progress, cancel)

    def verify(
        self,
        built: ObtainedEngine,
        contract: EncoderContract,
        source: EncoderSource,
        base: Path,
        *,
        real_inputs: Sequence[Tensors] = (),
        between: int = 3,
        tolerance: Tolerance | None = None,
        waivers: Sequence[Waiver] = (),
        now_s: float = 0.0,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> VerifiedEngine:
        """Compare this build with its source model on this host, and seal it VERIFIED if it holds.

        `source` and `base` are the encoder's, as for `export_encoder`; `real_inputs` are feeds of
        the caller, tried beside every profile corner and `between` seeded points. What was measured
        before, on the same inputs and build, is judged again without measuring.

        Raises:
            Unavailable: this host cannot run the engine.  Otherwise as `obtain`.
        """
        return verify_engine(
            self._shelf, self._workdir, built, contract, source=source, base=base,
            real_inputs=real_inputs, between=between, tolerance=tolerance, waivers=waivers,
            now_s=now_s, limits=self._limits, progress=progress, cancel=cancel,
        )  # fmt: skip

    def _build(
        self,
        spec: EngineSpec,
        about: Description,
        progress: Progress | None,
        cancel: Cancel | None,
    ) -> ObtainedEngine:
        with scratch(self._workdir) as folder:
            model, out = folder / "model.onnx", folder / "engine"
            self._shelf.store.fetch(spec.onnx, model)
            result = run_child(
                BUILD, BuildRequest(spec, str(model), str(out)), folder,
                subject=f"{spec.encoder} by {spec.backend}",
                limits=self._limits, progress=progress, cancel=cancel,
            )  # fmt: skip
            size = out.stat().st_size
            engine = self._shelf.store.put_file(out)
        manifest = EngineManifest(
            key=spec.key,
            spec=spec,
            engine=engine,
            size_bytes=size,
            state=EngineState.BUILT,
            build_log=self._shelf.store.put(result.log),
            phases=result.report.phases,
            inputs=about.inputs,
            outputs=about.outputs,
            source_onnx=about.source_onnx,
        )
        return self._shelf.keep_built(manifest, about)
