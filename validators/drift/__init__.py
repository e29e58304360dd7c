"""The drift gate: does this window of data still look like the one the champion was made from?

`window` is the measured data as a value, `permutation` the tests, `gate` the decision rule,
`hysteresis` the k-of-n rule for windows that are judged on a schedule.
"""
