"""Fractions rounded to integers that keep their sum: the largest remainders are rounded up."""

from __future__ import annotations

from collections.abc import Sequence


def apportioned(numerators: Sequence[int], denominator: int, total: int) -> list[int]:
    """Return the fractions as integers that sum to `total`, their rounded sum: the largest remainders are rounded up, ties in
    order."""
    found = [part // denominator for part in numerators]
    spare = total - sum(found)
    for place in sorted(range(len(found)), key=lambda k: -(numerators[k] % denominator))[:spare]:
        found[place] += 1
    return found


def nearest(numerator: int, denominator: int) -> int:
    """Return a fraction as the nearest integer."""
    return (2 * numerator + denominator) // (2 * denominator)
