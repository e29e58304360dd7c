"""The data-quality gates: rows that could not be read, and Great Expectations suites per modality.

`ingest` judges what ingest could not read; `gate` judges what it could. Values in, verdicts out.
"""
