"""The lineage gate: samples say where they came from, and nothing comes that training never saw."""
