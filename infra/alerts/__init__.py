"""Where alerts go: Alertmanager, a signed webhook, the orchestrator's events; and the outbox.

`posting` is how any of them is reached, `signature` both sides of a signed delivery, `outbox` keeps
what a receiver has not had yet.
"""
