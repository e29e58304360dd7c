"""Engines: torch or ONNX source → checked ONNX → compiled engine → sealed, verified, loaded.

What can crash (a torch factory, a compiler, a driver) runs in a fresh child process:
`process` starts one and watches it, `child` is its entry, `tasks` is what it can do.
`workshop` builds once per key and keeps what it built; `load` refuses whatever is not exactly
what was verified on this host. Backends are folders with the same three files, listed in
`backends.catalogue`. Nothing here imports a compiler until it is needed.
"""
