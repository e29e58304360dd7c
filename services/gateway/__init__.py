"""The serving gateway: one service, up to two revisions, over REST and gRPC.

`rest`, `grpc` and `admin` translate and hold files of the same names; `handlers` have no transport
in them; `scheduler`, `traffic` and the fusion policies decide without clock or I/O. What a bundle
needs to come to life (`revision.Loaders`) and the clock are handed in by whoever wires it.
"""
