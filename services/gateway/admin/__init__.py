"""The control plane: revisions, traffic, statistics, on a loopback port of its own."""
