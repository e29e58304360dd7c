"""Files that installed packages carry, found without importing the packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from validators.contracts.errors import Unavailable


def package_file(package: str, *parts: str) -> Path:
    """The path of a file inside an installed package.

    Raises:
        Unavailable: the package or the file is not there.
    """
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder, *parts)
        if path.is_file():
            return path
    raise Unavailable(
        f"the package {package} with {'/'.join(parts)} is not installed",
        where=package,
        remedy="Install the reference extra: uv pip install -e '.[reference]'.",
    )
