"""Two recordings of one sequence -> the places that certainly are the same place. Pure numbers: no tables, no names.

A recording is an array of tokens (equal token = could be the same launch), HOLE for a place where something stood that was
not recorded. Recordings lack items at both ends and in between, and neighbours may be swapped. A pair is *certain* when no
alignment with the most matches (or one match fewer, where both sides have items without a partner) gives either of the two
another partner. If one recording only lacks items of the other, a certain pair is never wrong: the true alignment is one of
those looked at. What is not certain is left out: never first come, first served.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int64]
Pairs = npt.NDArray[np.int64]

HOLE = -1
LARGEST = 16_000_000
"""The most cells (length of one recording times length of the other) that are looked at: about 250 MB of working memory."""


def certain_pairs(one: Tokens, other: Tokens) -> Pairs | None:
    """Return the certain pairs as an (n, 2) array of places, in the order of `one`; None where the recordings are too long.

    Both HOLEs and items stand in the recordings in launch order. Pairs with a HOLE are not returned.
    """
    if len(one) == len(other) and bool(np.all((one == other) | (one == HOLE) | (other == HOLE))):
        places = np.flatnonzero((one != HOLE) & (other != HOLE))
        return np.stack([places, places], axis=1)
    if len(one) * len(other) > LARGEST:
        return None
    found = _certain(one, other, 0)
    if _both_have_leftovers(one, other, found):
        found = _certain(one, other, 1)
    return np.argwhere(found)


def _both_have_leftovers(one: Tokens, other: Tokens, found: npt.NDArray[np.bool_]) -> bool:
    """Return whether items are left over on both sides that are of no use to each other."""
    return bool((~found.any(axis=1) & (one != HOLE)).any() and (~found.any(axis=0) & (other != HOLE)).any())


def _certain(one: Tokens, other: Tokens, slack: int) -> npt.NDArray[np.bool_]:
    """Return, per pair of places, whether it is certain against all alignments with up to `slack` matches fewer."""
    through = _through(one, other)
    best = through.max(initial=0)
    possible = through >= max(best - slack, 1)
    lonely = (possible.sum(axis=1, keepdims=True) == 1) & (possible.sum(axis=0, keepdims=True) == 1)
    recorded = (one[:, None] != HOLE) & (other[None, :] != HOLE)
    return np.asarray(possible & lonely & recorded & (through == best))


def _through(one: Tokens, other: Tokens) -> npt.NDArray[np.int32]:
    """Return, per pair of places that could be the same, the most matches of an alignment that pairs them; else 0."""
    before = _prefixes(one, other)
    after = _prefixes(one[::-1], other[::-1])[::-1, ::-1]
    through = before[:-1, :-1] + after[1:, 1:] + 1
    through[~_alike(one[:, None], other[None, :])] = 0
    return through


def _prefixes(one: Tokens, other: Tokens) -> npt.NDArray[np.int32]:
    """Return the most matches between the first i of `one` and the first j of `other`, for all i and j."""
    most = np.zeros((len(one) + 1, len(other) + 1), dtype=np.int32)
    for i, token in enumerate(one):
        row = most[i].copy()
        np.maximum(row[1:], most[i, :-1] + _alike(token, other), out=row[1:])
        np.maximum.accumulate(row, out=most[i + 1])
    return most


def _alike(token: object, other: Tokens) -> npt.NDArray[np.bool_]:
    return np.asarray((token == other) | (token == HOLE) | (other == HOLE))
