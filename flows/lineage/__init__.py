"""The lineage of releases: what is written down of a run, and the graph read back from records."""
