"""Engine backends: one folder each, with the same three files.

build.py   `check(spec)`: refuse what this backend cannot take. `build(spec, onnx, phases)`.
run.py     `open_session(spec, engine, threads)`: loaded, callable from several threads.
probe.py   `probe()`: what it can do here. `library()`: the one place that imports the package.
           `choose_target(names, found)`: what "host" or "SM89" means for it.
"""
