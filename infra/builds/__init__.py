"""Requests for engines that wait on this machine, each once, whoever files them."""

from infra.builds.folder import FolderQueue

__all__ = ["FolderQueue"]
