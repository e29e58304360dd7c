"""Recorded live windows on this machine: sealed files of a service, kept for a time only."""

from infra.windows.folder import DAMAGED, Bounds, Entry, WindowFolder

__all__ = ["DAMAGED", "Bounds", "Entry", "WindowFolder"]
