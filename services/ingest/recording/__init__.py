"""From the tracks of a recording to aligned samples in the quarantine.

Every track is read once, front to back (`reading`): what a sample may need goes to a spool on disk,
times and activity stay in memory. Then the time base says what is out of step, each tick is decided
and written to the alignment log (`ticking`), and the samples are cut (`sampling`). `take` is the
way in; a recording is taken whole or not at all.
"""
