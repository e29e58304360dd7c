"""The data-quality gate's surroundings: suites in a folder, what came before, what is kept.

`suite_folder` reads and writes the user's suites, `predecessor` finds the data set to compare with,
`step` judges a release's data and keeps what the verdict rests on.
"""
