"""A symmetric secret in a private file, made where it is missing."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from infra import files
from validators.contracts.errors import Refused

SECRET_BYTES = 32


def open_secret(path: Path) -> bytes:
    """The 32 secret bytes at `path`, made there (0600) if there are none; racers get one secret.

    Raises:
        Refused: others can read the file, or it does not hold a secret.
        Unavailable: the folder cannot be written.
    """
    remedy = "Choose a folder that this user may write."
    with files.disk_faults("the secret's file", str(path), remedy):
        if not path.exists():
            files.make_private_folder(path.parent)
            with files.stage(path.parent, path.name) as staged:
                staged.write(secrets.token_bytes(SECRET_BYTES))
                staged.publish_new(path)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            secret = stream.read(SECRET_BYTES + 1)
    if mode & 0o077 or len(secret) != SECRET_BYTES:
        raise Refused(
            f"the file does not hold a private secret (mode {mode:04o}, {len(secret)} bytes)",
            where=str(path),
            remedy=f"Run: chmod 600 {path}; move the file away if others may have read it.",
        )
    return secret
