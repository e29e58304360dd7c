"""Two encoders that work alone and break together: an incident, small enough to look into.

A text encoder reads the tokens of a vision encoder beside its own words. Text 2.1.0 and 2.1.1 have
the same weights and differ in the epsilon of their layer norms alone (1e-12, as BERT's, and 1e-5,
as torch's default); vision 1.8.3 and 1.8.4 differ in the scale of the tokens that they hand over.
In half precision each of the four is free of NaN by itself, and so are three of the four pairs.

All weights are seeded, none is trained: only the arithmetic is the subject.
"""
