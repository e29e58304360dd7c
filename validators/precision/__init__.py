"""Precision: which one an encoder runs in, by measurement. Judges, measures nothing.

`words` are the measurements, `timing` says when one is faster beyond the spread, `choice` chooses,
`bandwidth` says what moving the weights must cost, and `layouts` where 4-bit weights lose.
"""
