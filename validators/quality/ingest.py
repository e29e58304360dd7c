"""The ingest gate: what could not be read, and whether that much is bearable.

A row that is unreadable is always a finding, so it is never dropped in silence. Within
`missing_rate` of all rows it is a WARN (one torn file does not stop a release); above that share
each of them is a FAIL. A path that leads out of the data set's folder is not an accident: it is a
FAIL at any share and no waiver covers it.
"""

from __future__ import annotations

from validators.contracts.dataset import Dataset, Unreadable
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude

GATE = "ingest"
HOSTILE_REASONS = frozenset({"path-outside-folder"})


def assess_ingest(dataset: Dataset, *, missing_rate: float = 0.05) -> Verdict:
    """Judge a freshly ingested data set. No row at all is INCONCLUSIVE.

    `missing_rate` is the bearable share of unreadable rows, 0..1, inclusive.
    """
    bad, good = len(dataset.unreadable), len(dataset.samples)
    share = bad / (bad + good) if bad else 0.0
    outcome = Outcome.WARN if share <= missing_rate and good else Outcome.FAIL
    findings = [_finding(row, outcome, share, missing_rate) for row in dataset.unreadable]
    metrics = {"samples": good, "unreadable_rows": bad, "unreadable_share": share}
    return conclude(GATE, findings, examined=bad + good, metrics=metrics)


def _finding(row: Unreadable, outcome: Outcome, share: float, limit: float) -> Finding:
    hostile = row.reason in HOSTILE_REASONS
    return Finding(
        GATE,
        row.reason,
        row.id,
        Outcome.FAIL if hostile else outcome,
        row.detail if hostile else round(share, 6),
        "every file inside the folder" if hostile else limit,
        f"Repair or remove the row ({row.detail}), then ingest again.",
        waivable=not hostile,
    )
