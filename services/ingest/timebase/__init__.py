"""One time base for the tracks of a recording: time stamps and activity in, decisions out. Pure.

`ticks` are the moments that are asked about, `rule` what is declared for a track, `align` decides
each tick of each track, `correction` moves a track's clock. What is out of step is *observed*:
`stamps` from time stamps, `correlation` and `course` from what two tracks show, and `diagnosis`
makes of both a correction and suspected causes.

Time is in whole nanoseconds inside, so that hours add up exactly. An offset is negative where the
track lags the reference: what the reference shows now comes later on the track.
"""
