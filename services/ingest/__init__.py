"""From a folder of labelled media to a data set in the quarantine: bounded, normalised, measured.

`folder` is the way in, `manifest` reads its table, `enclosure` keeps reads inside the folder,
`normalise` gives every medium one form, `measures` describes it, `alignment_log` records it.
"""
