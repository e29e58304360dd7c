"""The audit of a de-identified data set, by detectors that share nothing with those that redacted.

`faces` (dlib's histogram-of-gradients detector), `identifiers` (checksummed numbers), `names`
(lists and forms of names) and `formats` (what a released object may be) report to `audit`; a
`certificate` says what was looked at, with what, and what may remain.
"""
