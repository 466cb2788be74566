"""Pairs of launches and of collective kernels: which of one tool or rank is which of another."""
