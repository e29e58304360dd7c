"""One of two processes that want the same engine: prints whether it found it built."""

from __future__ import annotations

import sys
from pathlib import Path

from infra.keys.file import FileSigner, open_verifier
from infra.objects.folder import FolderStore
from services.engines.specs import specify
from services.engines.workshop import EngineWorkshop
from tests.services.engines.models import IMAGE, IMAGE_PROFILES
from validators.contracts.engine import Precision


def main(root: Path, onnx: Path) -> None:
    store = FolderStore(root / "objects")
    signer = FileSigner.open(root / "key.pem")
    workshop = EngineWorkshop(
        store, signer, open_verifier(root / "trusted"), root / "locks", root / "work"
    )
    digest = store.put_file(onnx)
    spec = specify(IMAGE, digest, "tensorrt_rtx", Precision.FP32, IMAGE_PROFILES, targets=["SM89"])
    print("ready", flush=True)
    sys.stdin.readline()
    made = workshop.obtain(spec, digest, IMAGE)
    print(made.cached, made.sealed_digest, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
