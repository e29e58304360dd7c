"""The real gateway process, its engines replaced by the toy service's NumPy functions."""

from __future__ import annotations

import sys
from pathlib import Path

import flows.serve
from infra.keys.file import FileSigner
from services.gateway.encoders import Loaders
from tests.services.gateway.toy import Toy
from validators.contracts.digest import digest_bytes
from validators.contracts.ports import Verifier


def make_loaders(verifier: Verifier, threads: int = 1) -> Loaders:
    keys = Path(sys.argv[sys.argv.index("--trusted-keys") + 1])
    signer = FileSigner.open(keys.parent / "keys" / "release.pem")
    return Toy(keys, digest_bytes(b""), signer, keys).loaders()


if __name__ == "__main__":
    flows.serve.make_loaders = make_loaders
    sys.exit(flows.serve.main())
