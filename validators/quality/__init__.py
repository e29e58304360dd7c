"""The data-quality gates: rows that could not be read, and suites and rules over the others.

`ingest` judges what ingest could not read; `gate` judges the rest. Suites are values (`words`),
made from contracts (`contract`) or read from files (`suite_file`), run by Great Expectations in
memory (`checkpoint`) and turned into findings (`judgement`); `duplicates`, `times`, `labels` and
`columns` are rules over the whole set; `pages` writes what was found for people. Values in,
verdicts out.
"""
