"""De-identification: what leaves the quarantine has no face, no voice and no name in it.

`pipeline` applies a `policy` to a data set; `face`, `text` and `voice` do the work, one modality
each; `pseudonyms` holds the key that makes a release reproducible and its pseudonyms linkable
within one scope only.
"""
