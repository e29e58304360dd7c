"""The model registry on MLflow: one registered model a service, one version a bundle.

A version carries the bundle's digest and every gate's outcome as tags, and the evidence as
artifacts of its run, under a manifest whose digest is a tag too. MLflow gives a version at most
one value per alias, but no compare-and-set: see `MlflowRegistry.move_alias`.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities.model_registry import ModelVersion as MlflowVersion

from infra import files
from infra.registry import evidence as evidence_files
from infra.registry.alias_record import record_move
from infra.registry.mlflow_client import connect, faults, public_uri
from infra.registry.registration import BUNDLE_TAG, EVIDENCE_TAG, LOCK_TAG, Registrar
from validators.contracts.digest import Digest, require_digest
from validators.contracts.errors import BadInput, Conflict, NotFound, TooLarge
from validators.contracts.ports import Clock, Ledger, ModelVersion

MAX_TAGS = 200
MAX_TAG_CHARACTERS = 5000

_MODEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_ALIAS = re.compile(r"(?!latest$)(?!v\d+$)[a-z][a-z0-9_-]{0,62}")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/ -]{0,249}")
_OWN_TAGS = frozenset({BUNDLE_TAG, EVIDENCE_TAG, LOCK_TAG})
_PAGE = 200


class MlflowRegistry:
    """The `Registry` port on an MLflow database (SQLite, PostgreSQL …) or server.

    Nothing is sent before the first use. Writers of one model take turns by a file lock in
    `lock_folder`; an `artifact_root` of None leaves the place of artifacts to the server.

    `on_step` is told the name of each step of a registration that is done.
    """

    def __init__(
        self,
        tracking_uri: str,
        ledger: Ledger,
        *,
        lock_folder: Path,
        artifact_root: Path | str | None,
        clock: Clock,
        on_step: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._tracking_uri = tracking_uri
        self._where = public_uri(tracking_uri)
        self._ledger = ledger
        self._locks = lock_folder.absolute()
        self._artifact_root = artifact_root
        self._clock = clock
        self._on_step = on_step

    def register(
        self,
        model: str,
        bundle: Digest,
        *,
        evidence: Mapping[str, bytes],
        tags: Mapping[str, str],
    ) -> ModelVersion:
        _require(_MODEL, model, "a model")
        require_digest(bundle)
        _require_tags(tags)
        evidence_files.manifest_of(evidence)
        with self._turn(model), faults(self._where):
            made = self._registrar().register(model, bundle, evidence, tags)
            return _version(made, self._aliases(model))

    def versions(self, model: str) -> Sequence[ModelVersion]:
        """Every version that we registered, oldest first; versions of others are left out."""
        _require(_MODEL, model, "a model")
        with faults(self._where):
            aliases = self._aliases(model)
            found = [_version(item, aliases) for item in self._search(model) if _is_ours(item)]
        return sorted(found, key=lambda version: int(version.version))

    def version(self, model: str, version: str) -> ModelVersion:
        with faults(self._where):
            return _version(self._get(model, version), self._aliases(model))

    def set_tags(self, model: str, version: str, tags: Mapping[str, str]) -> None:
        _require_tags(tags)
        with self._turn(model), faults(self._where):
            self._get(model, version)
            for key, value in tags.items():
                self._client.set_model_version_tag(model, version, key, value)

    def alias(self, model: str, alias: str) -> ModelVersion | None:
        _require(_MODEL, model, "a model")
        _require(_ALIAS, alias, "an alias")
        with faults(self._where):
            version = self._aliases(model).get(alias)
        return None if version is None else self.version(model, version)

    def move_alias(
        self,
        model: str,
        alias: str,
        to: str | None,
        *,
        expected: str | None,
        actor: str,
        reason: str,
    ) -> None:
        """Move an alias by compare-and-set; the ledger says so first, then it moves.

        MLflow has no conditional write, so the comparison holds between processes that share the
        lock folder. Against one server from several machines, put that folder on storage they
        share; otherwise two of them can both pass the comparison, the later one wins, and the
        earlier one is told only if it still sees the other's value when it looks again.

        A crash between the two leaves a recorded move that did not happen: the same call finishes
        it, and any other writes what it found instead ("note-alias") before its own record.

        Raises:
            Conflict: the alias points elsewhere.  NotFound: there is no such version.
        """
        _require(_MODEL, model, "a model")
        _require(_ALIAS, alias, "an alias")
        with self._turn(model), faults(self._where):
            found = self._aliases(model).get(alias)
            if found != expected:
                raise _points_elsewhere(model, alias, expected, found)
            if to is not None:
                self._get(model, to)
            if to == found:
                return
            record_move(self._ledger, model, alias, found=found, to=to, actor=actor, reason=reason)
            self._on_step("recorded")
            if to is None:
                self._client.delete_registered_model_alias(model, alias)
            else:
                self._client.set_registered_model_alias(model, alias, to)
            after = self._aliases(model).get(alias)
            if after != to:
                raise _points_elsewhere(model, alias, to, after)

    def evidence(self, model: str, version: str) -> Mapping[str, bytes]:
        """The evidence by file name, checked. Raises Refused where it is not what was stored."""
        where = f"{model} version {version}"
        with faults(self._where), tempfile.TemporaryDirectory() as folder:
            found = self._get(model, version)
            for path in (evidence_files.MANIFEST, evidence_files.FOLDER):
                with contextlib.suppress(FileNotFoundError):
                    self._client.download_artifacts(found.run_id or "", path, folder)
            expected = found.tags.get(EVIDENCE_TAG, "")
            return evidence_files.read_files(Path(folder), expected, where)

    @cached_property
    def _client(self) -> MlflowClient:
        with self._lock_faults():
            files.make_private_folder(self._locks)
        return connect(self._tracking_uri, self._locks / "connect.lock")

    def _registrar(self) -> Registrar:
        root = self._artifact_root
        if isinstance(root, Path):
            files.make_private_folder(root.absolute())
            root = root.absolute().as_uri()
        return Registrar(
            client=self._client,
            tracking_uri=self._tracking_uri,
            artifact_root=root.rstrip("/") if root else None,
            lock_id=self._lock_id(),
            clock=self._clock,
            on_step=self._on_step,
        )

    def _lock_id(self) -> str:
        """The lock folder's own name, random and kept in it: host names change, it does not."""
        path = self._locks / "id"
        with self._lock_faults():
            if not path.exists():
                with files.stage(self._locks, "id") as staged:
                    staged.write(secrets.token_hex(16).encode("ascii"))
                    staged.publish_new(path)
            return path.read_text("ascii")

    @contextlib.contextmanager
    def _turn(self, model: str) -> Iterator[None]:
        _require(_MODEL, model, "a model")
        with self._lock_faults():
            files.make_private_folder(self._locks)
            with files.locked(self._locks / f"model-{model}.lock"):
                yield

    def _lock_faults(self) -> contextlib.AbstractContextManager[None]:
        remedy = "Choose a folder that this user may write."
        return files.disk_faults("the registry's lock folder", str(self._locks), remedy)

    def _get(self, model: str, version: str) -> MlflowVersion:
        _require(_MODEL, model, "a model")
        missing = NotFound(
            f"the model registry has no version {version[:20]!r} of {model}",
            where=self._where,
            remedy="List the versions, and name one of them.",
        )
        if not re.fullmatch(r"[0-9]{1,9}", version):
            raise missing
        try:
            with faults(self._where):
                found = self._client.get_model_version(model, version)
        except NotFound as error:
            raise missing from error
        if not _is_ours(found):
            raise missing
        return found

    def _aliases(self, model: str) -> dict[str, str]:
        """Alias to version; empty where the model is unknown."""
        try:
            with faults(self._where):
                found = self._client.get_registered_model(model).aliases
        except NotFound:
            return {}
        return {alias: str(version) for alias, version in found.items()}

    def _search(self, model: str) -> Iterator[MlflowVersion]:
        token: str | None = None
        while True:
            page = self._client.search_model_versions(
                f"name = '{model}'", max_results=_PAGE, page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return


def _is_ours(found: MlflowVersion) -> bool:
    return BUNDLE_TAG in found.tags


def _version(found: MlflowVersion, aliases: Mapping[str, str]) -> ModelVersion:
    number = str(found.version)
    return ModelVersion(
        model=found.name,
        version=number,
        bundle=require_digest(found.tags[BUNDLE_TAG]),
        created_ms=int(found.creation_timestamp),
        tags=dict(found.tags),
        aliases=tuple(sorted(name for name, version in aliases.items() if version == number)),
    )


def _require(form: re.Pattern[str], name: str, thing: str) -> None:
    if not form.fullmatch(name):
        raise BadInput(
            f"{name[:80]!r} cannot name {thing}",
            remedy=f"Use a name of the form {form.pattern}",
        )


def _require_tags(tags: Mapping[str, str]) -> None:
    if len(tags) > MAX_TAGS or any(len(value) > MAX_TAG_CHARACTERS for value in tags.values()):
        raise TooLarge(
            f"there are over {MAX_TAGS} tags, or one has over {MAX_TAG_CHARACTERS} characters",
            remedy="Put long values into the evidence.",
        )
    for key in tags:
        _require(_TAG, key, "a tag")
        if key in _OWN_TAGS:
            raise BadInput(
                f"the tag {key} is written by the registry alone", remedy="Choose another name."
            )


def _points_elsewhere(model: str, alias: str, expected: str | None, found: str | None) -> Conflict:
    return Conflict(
        f"the alias points to {_say(found)}, not to {_say(expected)}",
        where=f"{model}@{alias}",
        remedy="Look at who moved it in the ledger, and decide anew.",
    )


def _say(version: str | None) -> str:
    return "nothing" if version is None else f"version {version}"
