"""Shape profiles: which shapes engines are compiled for, planned from the shapes that were seen.

`histogram` records shapes, `bounds` says what a contract allows, `cost` prices a shape in work and
memory, `plan` picks the profiles (`exact` for one dimension, `search` for several), `ahead` plans
for requests still to come, `assign` says which profile serves a request, `padding` brings its
tensors to that shape and back, `records` keeps what serving saw as a document. All pure: nothing
here builds or runs an engine.
Why it is so: docs/decisions/0011-shape-profiles.md.
"""
