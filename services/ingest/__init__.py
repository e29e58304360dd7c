"""From a folder of labelled media to a data set in the quarantine: bounded, normalised, measured.

`folder` is the way in, `manifest` reads its table, `enclosure` keeps reads inside the folder,
`normalise` gives every medium one form, `measures` describes it. Recordings are decoded by `media`,
put on one time base by `timebase`, and cut into samples by `recording`. `alignment_log` records
what every stage did, `alignment_reader` and `alignment_report` read it back.
"""
