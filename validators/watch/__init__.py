"""Live traffic watched: what of it may be recorded, and when drift in it is an alarm.

`plan` is what a gateway may keep of a request, `ready` which columns can be judged, `alarm` the
rule of when people are told, `state` what is known between two looks, `blur` what reports may show.
"""
