"""Which launch of one tool or rank is which of another."""
