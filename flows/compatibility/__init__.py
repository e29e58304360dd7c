"""Whether versions of encoders fit each other: two by two, and every one with every other.

`sides` finds out what is meant and `items` what it is tried on; `compare` looks at one encoder in
two versions, `meetings` fills the matrix of encoders that meet in a common space, `incident` that
of the committed example. `flow` puts them in order for a service, `schedule` runs it.
"""
