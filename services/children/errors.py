"""What can go wrong with a child process that builds.

ModalgateError
├── Unavailable
│   ├── ChildCrashed      it died, by a signal or an exception of its own
│   └── BuildCancelled    the caller asked for an end
├── DeadlineExceeded
│   └── ChildTimedOut     it took longer than its limit
└── BadInput / TooLarge
    └── ChildTooLarge     it took more memory than its limit
"""

from __future__ import annotations

from validators.contracts.errors import DeadlineExceeded, TooLarge, Unavailable


class ChildCrashed(Unavailable):
    """The child process died before it could answer; nothing of its work was kept."""


class BuildCancelled(Unavailable):
    """The caller cancelled; the child and whatever it started are gone."""


class ChildTimedOut(DeadlineExceeded):
    """The child was stopped at its time limit."""


class ChildTooLarge(TooLarge):
    """The child was stopped at its memory limit."""
