"""Facets of OpenLineage: the standard ones where there are some, and our own, named `modalgate_`.

The schemas of our own lie beside this file, in `facets.schema.json`; `_schemaURL` points into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from openlineage.client.generated.base import DatasetFacet, InputDatasetFacet, RunFacet
from openlineage.client.generated.data_quality_assertions_dataset import (
    Assertion,
    DataQualityAssertionsDatasetFacet,
)
from openlineage.client.generated.data_quality_metrics_input_dataset import (
    DataQualityMetricsInputDatasetFacet,
)
from openlineage.client.generated.dataset_type_dataset import DatasetTypeDatasetFacet
from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet
from openlineage.client.generated.datasource_dataset import DatasourceDatasetFacet
from openlineage.client.generated.lifecycle_state_change_dataset import (
    LifecycleStateChange,
    LifecycleStateChangeDatasetFacet,
)
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet
from openlineage.client.generated.schema_dataset import (
    SchemaDatasetFacet,
    SchemaDatasetFacetFields,
)

from validators.contracts.verdict import Outcome, Verdict
from validators.lineage.graph import Node, NodeKind

PRODUCER = "urn:modalgate"
SCHEMA_ID = "urn:modalgate:openlineage-facets:1"

_TYPES = {
    NodeKind.SOURCE: "FILE", NodeKind.INGESTED: "FILE", NodeKind.DATASET: "FILE",
    NodeKind.CERTIFICATE: "JOB_OUTPUT", NodeKind.WINDOW: "FILE", NodeKind.ASSET: "FILE",
    NodeKind.DEPLOYMENT: "JOB_OUTPUT",
}  # fmt: skip
_PREPROCESSING = "preprocessing."


class NodeFacet(DatasetFacet):
    """What a thing is, and the facts that are known of it."""

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA_ID}#/$defs/NodeFacet"


class VerdictFacet(RunFacet):
    """What a gate said, without the subjects of its findings."""

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA_ID}#/$defs/VerdictFacet"


class StepFacet(RunFacet):
    """The digest that a step's run id is made from."""

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA_ID}#/$defs/StepFacet"


def dataset_facets(node: Node, *, made: bool) -> dict[str, DatasetFacet]:
    """The facets of a thing; `made` where the run that is told of made it."""
    facts = dict(node.facets)
    facets: dict[str, Any] = {
        "version": DatasetVersionDatasetFacet(node.digest, producer=PRODUCER),
        "datasetType": DatasetTypeDatasetFacet(
            _TYPES.get(node.kind, "MODEL"), subType=node.kind.name, producer=PRODUCER
        ),
        "modalgate_node": NodeFacet(producer=PRODUCER).with_additional_properties(
            kind=node.kind.value, label=node.label, facts=facts
        ),
    }
    if node.kind is NodeKind.SOURCE:
        facets["dataSource"] = DatasourceDatasetFacet(node.label, producer=PRODUCER)
    fields = [
        SchemaDatasetFacetFields(name.removeprefix(_PREPROCESSING), "media", f"prepared by {value}")
        for name, value in node.facets
        if name.startswith(_PREPROCESSING)
    ]
    if fields:
        facets["schema"] = SchemaDatasetFacet(fields, producer=PRODUCER)
    if made:
        facets["lifecycleStateChange"] = LifecycleStateChangeDatasetFacet(
            LifecycleStateChange.CREATE, producer=PRODUCER
        )
    return facets


def quality_facets(verdict: Verdict) -> dict[str, InputDatasetFacet]:
    """What a gate measured on its input: how many rows, and each of its rules as an assertion."""
    worst: dict[str, Outcome] = {}
    for item in verdict.findings:
        worst[item.code] = max(worst.get(item.code, item.outcome), item.outcome, key=_severity)
    counts = Counter(item.code for item in verdict.findings)
    assertions = [
        Assertion(
            assertion=code, success=False, severity=_severity_word(outcome),
            name=f"{verdict.gate}/{code}", actual=f"{counts[code]} findings",
        )
        for code, outcome in sorted(worst.items())
    ] or [Assertion(assertion=verdict.gate, success=True, name=verdict.gate)]  # fmt: skip
    samples = dict(verdict.metrics).get("samples")
    return {
        "dataQualityAssertions": DataQualityAssertionsDatasetFacet(assertions, producer=PRODUCER),
        "dataQualityMetrics": DataQualityMetricsInputDatasetFacet(
            {}, rowCount=None if samples is None else int(samples), producer=PRODUCER
        ),
    }


def verdict_facet(verdict: Verdict) -> RunFacet:
    """A gate's answer as a facet of its run."""
    facts = {"gate": verdict.gate, "outcome": verdict.outcome.value,
             "metrics": dict(verdict.metrics)}  # fmt: skip
    return _with(VerdictFacet(producer=PRODUCER), facts)


def step_facet(digest: str) -> RunFacet:
    return _with(StepFacet(producer=PRODUCER), {"digest": digest})


def engine_facet() -> RunFacet:
    """The program that ran the step."""
    return ProcessingEngineRunFacet(
        version("modalgate"), "Modalgate", version("openlineage-python"), producer=PRODUCER
    )


def _with(facet: RunFacet, facts: Mapping[str, Any]) -> RunFacet:
    return facet.with_additional_properties(**facts)  # type: ignore[return-value]


def _severity(outcome: Outcome) -> int:
    return outcome.severity


def _severity_word(outcome: Outcome) -> str:
    return "warn" if outcome <= Outcome.WARN else "error"
