"""Engines that take any shape, and are replaced while they serve.

`plan` decides how one request is run, `recorder` counts the shapes, `wishes` says which shapes are
worth an engine, `filing` hands them to the build queue off the request path, `replacement` says
which engine may take another one's place, `warming` runs one in, `generations` keeps an engine open
until its last call has left, `engine` joins them. Why: docs/decisions/0013-elastic-engines.md.
"""
