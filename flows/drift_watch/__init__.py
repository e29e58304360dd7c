"""Live traffic watched for drift: looks, judgements, alarms, and what they start.

`watched` is what a look at one service needs, `gather` its recorded windows, `judge` the verdict,
`look` one look from begin to end, `flow` the looks of all services by the orchestrator.
"""
