"""Write the message classes of the `.proto` files: `python -m services.gateway.grpc.generate`.

Needs grpcio-tools, which serving does not.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parents[2]


def generate(into: Path) -> None:
    """Generate below `into`, in the folders that the package has below the repository.

    Raises:
        SystemExit: protoc refused a file; its reason is on standard error.
    """
    files = [str(path.relative_to(ROOT)) for path in sorted(PACKAGE.glob("*.proto"))]
    code = protoc.main(
        ["protoc", f"--proto_path={ROOT}", f"--python_out={into}", f"--pyi_out={into}", *files]
    )
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
