"""The lineage gate: samples say where they came from, and nothing comes that training never saw.

`tags` reads what a sample says of itself, `counts` and `summary` gather it in bounded memory so
that parts can be merged; `compare` holds two of them against each other, `gate` judges a data set.
`preprocessing` and `record` name what was done to each medium; `graph` is what came from what.
"""
