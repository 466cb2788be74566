"""Statistics of arrays: pure functions on numpy."""
