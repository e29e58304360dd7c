"""The privacy gate: what an independent audit still found in a de-identified data set."""
