"""Stored engines tried one by one, folded into one verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flows.documents import verdict_rows
from flows.inventory import StoredEngine, sealed_manifest
from flows.progress import reporter
from flows.workspace import Workspace
from services.children.process import Cancel
from services.engines.inspection import ANEW, GATE, inspect_engine
from validators.contracts.digest import short
from validators.contracts.errors import ModalgateError, NotFound, Refused
from validators.contracts.verdict import Finding, GatePolicy, Outcome, conclude, fold, require_pass
from validators.retention import Use

_PRUNE = "Nothing uses it. Remove it: modalgate engines prune."


def inspect_all(
    workspace: Workspace, engines: Sequence[StoredEngine], cancel: Cancel | None = None
) -> dict[str, Any]:
    """Each engine's result and the verdict over all; no engine at all is nothing wrong.

    Raises:
        Blocked: one is damaged.  Undecided: one could not be tried. Both carry the document.
    """
    rows: list[dict[str, Any]] = []
    findings: list[Finding] = []
    for engine in engines:
        step = f"engine {short(engine.key)}"
        reporter().started(step)
        found = _inspect(workspace, engine, cancel)
        outcome = fold(item.outcome for item in found) or Outcome.PASS
        rows.append({"key": engine.key, "outcome": outcome, "findings": found})
        findings += found
        reporter().finished(step, outcome.value)
    if not engines:
        return {"engines": [], "verdicts": []}
    verdict = conclude(GATE, findings, examined=len(engines))
    document: dict[str, object] = {"engines": rows, "verdicts": verdict_rows([verdict])}
    try:
        require_pass(verdict, GatePolicy())
    except ModalgateError as error:
        error.attachment = document
        raise
    return document


def _inspect(
    workspace: Workspace, engine: StoredEngine, cancel: Cancel | None
) -> tuple[Finding, ...]:
    """All documents of the engine; where one is VERIFIED, the build alone has nothing to add."""
    found: list[Finding] = []
    tried = False
    for name in engine.references:
        try:
            sealed = sealed_manifest(workspace, name)
        except (NotFound, Refused) as error:
            found.append(_damaged(engine, name, error))
            continue
        workdir = workspace.home.folder("engines", "work")
        result = inspect_engine(sealed, workspace.store, workspace.verifier, workdir, cancel=cancel)
        if not (tried and all(item.code == "built-only" for item in result)):
            found += result
        tried = tried or not any(item.code in ("manifest", "bytes") for item in result)
    return tuple(_advised(engine, item) for item in dict.fromkeys(found))


def _advised(engine: StoredEngine, finding: Finding) -> Finding:
    """What nothing uses may go; retention never removes what serves."""
    unused = engine.use is Use.NONE and finding.remedy == ANEW
    return replace(finding, remedy=_PRUNE) if unused else finding


def _damaged(engine: StoredEngine, name: str, error: ModalgateError) -> Finding:
    return Finding(
        GATE, "manifest", f"{name.split('/', maxsplit=1)[0]} {short(engine.key)}", Outcome.FAIL,
        error.what, "as verified", error.remedy or ANEW,
    )  # fmt: skip
