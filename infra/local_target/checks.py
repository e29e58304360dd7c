"""What a verb checks before it changes anything."""

from __future__ import annotations

import re
from pathlib import Path

from infra.local_target.desired import DesiredState
from validators.contracts.deployment import Revision
from validators.contracts.digest import digest_bytes
from validators.contracts.errors import BadInput, NotFound, Refused

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")


def check_name(name: str, what: str) -> None:
    """Raises BadInput where a name could not be a folder's or a route's."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name[:80]!r} is not the name of a {what}",
            remedy="Use lower-case letters, digits, '-', '_' and '.', 63 at most.",
        )


def check_bundle(revision: Revision) -> None:
    """Raises NotFound or Refused where the folder does not hold the revision's bundle."""
    path = Path(revision.bundle_path) / "bundle.json"
    try:
        found = digest_bytes(path.read_bytes())
    except FileNotFoundError as error:
        raise NotFound(
            f"the bundle of revision {revision.name} is not there",
            where=str(path),
            remedy="Materialise the bundle in this folder first.",
        ) from error
    if found != revision.bundle:
        raise Refused(
            f"the folder of revision {revision.name} holds another bundle",
            where=str(path),
            remedy="Materialise the approved bundle again.",
        )


def check_on_disk(state: DesiredState) -> None:
    """Raises NotFound where a bundle that should serve is gone."""
    for revision in state.revisions:
        if not (Path(revision.path) / "bundle.json").is_file():
            raise NotFound(
                f"the bundle of the known-good revision {revision.name} is gone",
                where=revision.path,
                remedy="Materialise that bundle there again, or apply another one.",
            )


def nothing_deployed(service: str) -> NotFound:
    """The error of every verb on a service that does not run."""
    return NotFound(
        f"nothing is deployed for {service}",
        where=service,
        remedy="Apply a revision first.",
    )
