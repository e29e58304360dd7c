"""What the benchmarks call Evidently's default is what Evidently itself decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.benchmarks.drift_shifts import Mixture, Table, embedding_window
from validators.drift.window import DriftWindow

pytestmark = pytest.mark.slow


def frame(window: DriftWindow) -> pd.DataFrame:
    columns: dict[str, Any] = {
        name: np.where(column.present, column.values, np.nan)
        for name, column in window.descriptors.items()
    }
    for name, column in window.categories.items():
        columns[name] = np.array(column.vocabulary, dtype=object)[column.codes]
    return pd.DataFrame(columns)


@pytest.mark.parametrize("shifted", [Table(), Table(mean=0.5, lost=0.1), Table(mix=0.2)])
def test_the_number_of_drifted_columns_is_that_of_evidently_s_report(shifted: Table) -> None:
    from evidently import DataDefinition, Dataset, Report
    from evidently.presets import DataDriftPreset

    from tests.benchmarks.drift_peers import evidently_columns_drifted

    generator = np.random.default_rng(5)
    reference, current = Table()(generator, 200), shifted(generator, 200)
    definition = DataDefinition(
        numerical_columns=list(reference.descriptors), categorical_columns=["label"]
    )
    before, now = (
        Dataset.from_pandas(frame(window), data_definition=definition)
        for window in (reference, current)
    )
    found = Report([DataDriftPreset()]).run(now, before).dict()["metrics"][0]["value"]
    assert evidently_columns_drifted(reference, current) == found["count"]


def test_the_exact_mmd_tells_clouds_apart_and_like_ones_not() -> None:
    from tests.benchmarks.drift_peers import classifier_p_value, exact_mmd

    generator = np.random.default_rng(6)
    one, same, moved = (
        embedding_window(draw, generator, 150).embeddings["image"].vectors
        for draw in (Mixture(), Mixture(), Mixture(along=0.8))
    )
    assert exact_mmd(one, moved, 1) < 0.02 < exact_mmd(one, same, 1)
    wide = [np.asarray(item, float) for item in (one, same, moved)]
    assert classifier_p_value(wide[0], wide[2], 1) < 0.01 < classifier_p_value(*wide[:2], 1)
