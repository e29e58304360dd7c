"""The drift gate: does this window of data still look like the one the champion was made from?

`window` is the measured data as a value (`columns`, `window_file`, `joining`, `dataset_window`),
`subjects` what two windows have in common as `blocks` of row features (`detectors` for vectors,
`pairs` for modalities that belong together), `labelling` and `dependence` who may have been in
which window, `family` the tests under one rate, `gate` the decision rule, `explanation` what moved
and where, `sketches` the same over more rows than fit in memory, `report`
Evidently's pictures.
"""
