"""Live traffic watched: what of it may be recorded, and when drift in it is an alarm.

`plan` is what a gateway is allowed to keep of a request, `alarm` the rule of when people are told.
"""
