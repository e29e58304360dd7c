"""Engines built in the background, for shapes that came after the release."""
