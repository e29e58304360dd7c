"""Every row of a column is judged once: when there are enough of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.digest import digest_bytes
from validators.contracts.origin import VectorOrigin
from validators.contracts.verdict import Finding, Outcome, Verdict
from validators.drift.columns import Categories, Embedded, Scalars, as_rows
from validators.drift.window import DriftWindow
from validators.watch.ready import only, ready_columns, samples_of
from validators.watch.state import MAX_FEATURES, STATE_FORMAT, WatchState, with_features

ORIGIN = VectorOrigin(digest_bytes(b"encoder"), digest_bytes(b"engine"))
WINDOW = DriftWindow(
    rows=3,
    descriptors={
        "image.brightness": Scalars.of([1.0, 2.0, np.nan]),
        "audio.rms_db": Scalars.of([np.nan] * 3),
    },
    categories={"presence.image": Categories.of(["yes", "yes", "no"])},
    embeddings={"image": Embedded(np.zeros((2, 4), np.float32), as_rows([0, 1]), "s", ORIGIN)},
    tags={"sensor": Categories.of(["a", "a", None])},
)


def test_samples_are_counted_by_column() -> None:
    assert samples_of(WINDOW) == {"image.brightness": 2, "embedding.image": 2}


def test_a_window_is_cut_to_some_columns_and_keeps_its_rows() -> None:
    cut = only(WINDOW, {"embedding.image"})
    assert (list(cut.descriptors), list(cut.embeddings), cut.rows) == ([], ["image"], 3)
    assert cut.tags == WINDOW.tags
    assert only(WINDOW, set(samples_of(WINDOW)) | {"audio.rms_db"}) == replace(WINDOW)


columns = st.sampled_from(["image.brightness", "audio.rms_db", "embedding.image", "text.words"])


@given(
    st.lists(st.dictionaries(columns, st.integers(1, 40)), max_size=30), st.integers(1, 60)
)  # fmt: skip
def test_no_column_is_passed_over(recorded: list[dict[str, int]], minimum: int) -> None:
    """Windows come one at a time; what is ready is judged, the rest waits."""
    waiting: list[dict[str, int]] = []
    judged: dict[str, int] = {}
    for counts in recorded:
        waiting.append(dict(counts))
        ready = ready_columns(waiting, minimum, {"image.brightness", "audio.rms_db", "text.words"})
        for item in waiting:
            for name in ready & set(item):
                judged[name] = judged.get(name, 0) + item.pop(name)
        assert not ready or all(judged[name] >= minimum for name in ready)
    for name in {name for counts in recorded for name in counts} - {"embedding.image"}:
        left = sum(item.get(name, 0) for item in waiting)
        assert judged.get(name, 0) + left == sum(counts.get(name, 0) for counts in recorded)
        assert left < minimum
    assert "embedding.image" not in judged, "the reference does not know it"


def test_figures_of_features_are_bounded_and_the_drifted_ones_stay() -> None:
    metrics = {f"effect.f{n:03}": n / 1000 for n in range(100)}
    metrics |= {f"p.f{n:03}": 0.5 for n in range(100)} | {"features": 100.0}
    finding = Finding("drift", "drifted", "f000", Outcome.FAIL, 0.0, 0.1, "Look.")
    verdict = Verdict("drift", Outcome.FAIL, (finding,), tuple(metrics.items()))
    state = with_features(WatchState(STATE_FORMAT, "shop"), verdict, 7)
    assert len(state.features) == MAX_FEATURES
    (first,) = [item for item in state.features if item.name == "f000"]
    assert (first.drifted, first.p_value, first.at_ms) == (True, 0.5, 7)
    assert {item.name for item in state.features} >= {"f099", "f098"}
