"""A canary as a state machine without clock or I/O: measurements and time in, decisions out.

plan        steps, holding times, and the limits of the tests
exposure    counters become blocks of new requests
sequential  tests that may be looked at after every request (e-processes)
state       all that a rollout remembers, as one serialisable value
rules       small named rules that propose hold, advance, promote or roll back
verdict     the gate's answer once it is over
"""

from validators.rollout.exposure import Measurement
from validators.rollout.plan import CanaryPlan, RolloutLimits
from validators.rollout.rules import (
    Advance,
    Decision,
    Hold,
    Promote,
    RollBack,
    advance_rollout,
    decide,
)
from validators.rollout.state import Ending, RolloutState, begin, observe, resume
from validators.rollout.verdict import assess_rollout

__all__ = [
    "Advance",
    "CanaryPlan",
    "Decision",
    "Ending",
    "Hold",
    "Measurement",
    "Promote",
    "RollBack",
    "RolloutLimits",
    "RolloutState",
    "advance_rollout",
    "assess_rollout",
    "begin",
    "decide",
    "observe",
    "resume",
]
