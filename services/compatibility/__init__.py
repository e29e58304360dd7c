"""Two versions of an encoder run on the same items, and what that shows as measured values."""
