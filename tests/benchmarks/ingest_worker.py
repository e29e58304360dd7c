"""`python -m tests.benchmarks.ingest_worker FOLDER`: one ingest of a folder, with its log."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.clocks import SystemClock
from infra.objects.folder import FolderStore
from services.ingest.alignment_log import AlignmentLog
from services.ingest.folder import Journal, ingest_folder


def main() -> None:
    folder = Path(sys.argv[1])
    with TemporaryDirectory(dir=folder) as name, (Path(name) / "log.jsonl").open("wb") as log:
        journal = Journal(AlignmentLog(log), SystemClock())
        own = resource.getrusage(resource.RUSAGE_SELF)
        before_s = own.ru_utime + own.ru_stime
        started = time.perf_counter()
        dataset = ingest_folder(folder, FolderStore(Path(name) / "q"), journal=journal,
                                spool=Path(name))  # fmt: skip
        wall_s = time.perf_counter() - started
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        cpu_s = sum(item.ru_utime + item.ru_stime for item in used) - before_s
        log.flush()
        stages: dict[str, float] = {}
        offsets: dict[str, list[float]] = {}
        with (Path(name) / "log.jsonl").open("rb") as written:
            for line in written:
                event = json.loads(line)
                stage = event["pipeline_stage"]
                if stage == "decode":
                    stage += " " + event["modalities"][0]
                stages[stage] = stages.get(stage, 0.0) + event["processing_ms"]
                for track, offset in event["observed_offsets_ms"].items():
                    offsets.setdefault(track, []).append(offset)
    print(json.dumps({
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "samples": len(dataset.samples),
        "unreadable": [item.reason for item in dataset.unreadable],
        "stages_ms": stages,
        "offsets_ms": {track: sum(found) / len(found) for track, found in offsets.items()},
    }))  # fmt: skip


if __name__ == "__main__":
    main()
