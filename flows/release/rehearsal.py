"""The SLO rehearsal: the assembled bundle on a real gateway, before anybody can reach it.

It runs inside the quarantine zone of this machine: spoken probes are the raw recordings, and the
gateway that hears them serves nobody else and ends with the step.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from prefect import task

from flows.progress import reporter
from flows.release.bundle import materialise, sign
from flows.release.data import RAW_PREFIX, REHEARSAL_PREFIX, require_raw
from flows.release.run import STEP, Release
from flows.release.values import Probe, Rehearsed
from flows.replay import Client, Reply, requests_of
from validators.contracts.bundle import Bundle
from validators.contracts.dataset import Dataset
from validators.contracts.digest import canonical_json
from validators.contracts.errors import Unavailable
from validators.rehearsal.verdict import PairScores, assess_rehearsal

REQUESTS = 300
"""Enough to bound P99 without assuming a distribution (299 are)."""

WARM_UP = 12


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What is rehearsed, with what."""

    bundle: Bundle
    probes: tuple[Probe, ...]
    raw: Dataset
    scores: PairScores


def probes_of(clean: Dataset, raw: Dataset, texts: dict[str, str]) -> tuple[Probe, ...]:
    """One probe a sample: its released picture and caption, its raw recording."""
    recordings = {sample.id: sample.find("audio") for sample in raw.samples}
    return tuple(
        Probe(
            id=sample.id,
            image=image.digest if (image := sample.find("image")) else None,
            text=texts.get(sample.id),
            audio=audio.digest if (audio := recordings.get(sample.id)) else None,
        )
        for sample in clean.samples
    )


@task(name="rehearsal", **STEP)
def rehearse(release: Release, rehearsal: Rehearsal) -> None:
    """Replay probes against a private gateway and judge latency, errors, memory, consistency."""
    reporter().started("rehearsal")
    found = release.journal.perform(
        "rehearsal",
        {"bundle": rehearsal.bundle.digest, "requests": REQUESTS, "probes": rehearsal.probes},
        Rehearsed,
        lambda: _rehearse(release, rehearsal),
    )
    release.gate(found.verdict)


def _rehearse(release: Release, rehearsal: Rehearsal) -> Rehearsed:
    require_raw(release, rehearsal.raw)
    with TemporaryDirectory(prefix=REHEARSAL_PREFIX, dir=release.quarantine_folder) as folder:
        replies, peak_mb = _replay(release, rehearsal, Path(folder))
    answered = [reply.latency_ms for reply in replies if reply.answered]
    scores = rehearsal.scores if rehearsal.scores.matched else None
    verdict = assess_rehearsal(
        answered, len(replies) - len(answered), peak_mb, release.pipeline.slo, consistency=scores
    )
    release.write_evidence("rehearsal-replies.json", canonical_json(_summary(replies)))
    return Rehearsed(verdict)


def _replay(
    release: Release, rehearsal: Rehearsal, folder: Path
) -> tuple[list[Reply], float | None]:
    workspace, service = release.workspace, rehearsal.bundle.service
    target = workspace.local_target(folder / "deployments", "--parent", str(os.getpid()))
    (folder / "bundles").mkdir()
    try:
        signature = sign(workspace, rehearsal.bundle)
        revision = materialise(workspace, rehearsal.bundle, signature, folder / "bundles")
        status = target.apply(revision)
        if status.rest_url is None or status.pid is None:
            raise Unavailable("the rehearsal's gateway has no address", where=status.message)
        requests = list(requests_of(rehearsal.probes, workspace.store.get, release.quarantine.get))
        replies: list[Reply] = []
        mark = functools.partial(target.mark_probe, service)
        with Client(status.rest_url, mark) as client:
            for request in requests[:WARM_UP]:
                client.send(request)
            for request in itertools.islice(itertools.cycle(requests), REQUESTS):
                replies.append(client.send(request))
                reporter().advanced("rehearsal", len(replies), REQUESTS)
        return replies, _peak_memory_mb(status.pid)
    finally:
        target.stop(service)


def _peak_memory_mb(pid: int) -> float | None:
    """The largest resident memory that the kernel saw of a process, or None where it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return float(psutil.Process(pid).memory_info().rss) / 2**20
    except (OSError, psutil.Error):
        return None


def _summary(replies: Sequence[Reply]) -> dict[str, object]:
    """Latencies and matches by modality, and what was said instead of each missing answer.

    `found` counts the requests whose own sample was among the items of the answer.
    """
    latencies: dict[str, list[float]] = {}
    found: dict[str, int] = {}
    for reply in replies:
        if reply.answered:
            modality = reply.request.modality
            latencies.setdefault(modality, []).append(round(reply.latency_ms, 2))
            items = [item["id"] for item in reply.document.get("items", [])]
            found[modality] = found.get(modality, 0) + (reply.request.probe in items)
    refused = [
        {
            "probe": reply.request.probe,
            "modality": reply.request.modality,
            "status": reply.status,
            "error": reply.document.get("error"),
        }
        for reply in replies
        if not reply.answered
    ]
    return {"latency_ms": latencies, "found": found, "refused": refused}


def clear_leftovers(release: Release) -> None:
    """Remove what a killed run left in the quarantine: raw folders, and a gateway it may have had.

    The caller holds the service's release lock, so nothing there is in use.
    """
    for folder in release.quarantine_folder.glob(f"{REHEARSAL_PREFIX}*"):
        target = release.workspace.local_target(folder / "deployments")
        target.stop(release.pipeline.service)
        shutil.rmtree(folder, ignore_errors=True)
    for folder in release.quarantine_folder.glob(f"{RAW_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)
