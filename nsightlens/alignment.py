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
LARGEST = 24_000_000
"""The most pairs of places that are looked at, at about 12 bytes of working memory each."""


def certain_pairs(one: Tokens, other: Tokens) -> Pairs | None:
    """Return the certain pairs as an (n, 2) array of places, in the order of `one`.

    None where the recordings are too long and differ too much to look at every alignment that could matter. Pairs with a
    HOLE are not returned. Time and memory: the length times twice the number of items that have no partner, at least.
    """
    if len(one) == len(other) and bool(np.all(_alike(one, other))):
        places = np.flatnonzero((one != HOLE) & (other != HOLE))
        return np.stack([places, places], axis=1)
    shorter, apart = min(len(one), len(other)), abs(len(one) - len(other))
    spare = 64 if len(one) * len(other) > LARGEST // 2 else max(len(one), len(other))
    while len(one) * (apart + 2 * spare + 1) <= 2 * LARGEST:
        through, first = _through(one, other, spare)
        best = int(through.max(initial=0))
        if best - 1 >= shorter - spare:  # an alignment that strays farther has fewer matches than are looked at
            return _certain(one, other, through, first)
        spare *= 2
    return None


def _certain(one: Tokens, other: Tokens, through: npt.NDArray[np.int32], first: int) -> Pairs:
    found = _alone(one, other, through, first, 0)
    leftover = [np.setdiff1d(np.flatnonzero(side != HOLE), found[:, place]).size for place, side in enumerate((one, other))]
    return _alone(one, other, through, first, 1) if all(leftover) else found


def _alone(one: Tokens, other: Tokens, through: npt.NDArray[np.int32], first: int, slack: int) -> Pairs:
    """Return the pairs of the best alignments whose members have no other partner in those with `slack` matches fewer."""
    best = int(through.max(initial=0))
    row, place = np.nonzero(through >= max(best - slack, 1))
    column = row + place + first
    alone = (np.bincount(row, minlength=len(one))[row] == 1) & (np.bincount(column, minlength=len(other))[column] == 1)
    alone &= (through[row, place] == best) & (one[row] != HOLE) & (other[column] != HOLE)
    return np.stack([row[alone], column[alone]], axis=1)


def _through(one: Tokens, other: Tokens, spare: int) -> tuple[npt.NDArray[np.int32], int]:
    """Return, per pair of places that could be the same, the most matches of an alignment that pairs them, else 0.

    Row i holds the places first + i, first + i + 1, … of `other`, so far as they lie within `spare` of the diagonals on
    which the two begin and end together.
    """
    first = max(min(0, len(other) - len(one)) - spare, -len(one))
    last = min(max(0, len(other) - len(one)) + spare, len(other))
    before = _prefixes(one, other, first, last)
    after = _prefixes(one[::-1], other[::-1], len(other) - len(one) - last, len(other) - len(one) - first)
    through = before[:-1]
    through += after[:-1][::-1, ::-1]
    through += 1
    padded = _padded(other, len(one), first, last)
    for i, token in enumerate(one):
        through[i, ~_alike(token, padded[i : i + last - first + 1])] = 0
    return through, first


def _prefixes(one: Tokens, other: Tokens, first: int, last: int) -> npt.NDArray[np.int32]:
    """Return the most matches between the first i of `one` and the first j of `other`; row i holds j = i + first … i + last."""
    most = np.zeros((len(one) + 1, last - first + 1), dtype=np.int32)
    padded = _padded(other, len(one), first, last)
    for i, token in enumerate(one):
        row = most[i + 1]
        row[:-1] = most[i, 1:]  # the same place of `other`, one place of `one` before
        matched = most[i, :-1] + _alike(token, padded[i : i + last - first])
        np.maximum(row[:-1], matched, out=row[:-1])
        row[-1] = most[i, -1] + _alike(token, padded[i + last - first])
        np.maximum.accumulate(row, out=row)
    return most


_NOTHING = -2
"""A place before or after the recording: like nothing, not even a HOLE."""


def _padded(other: Tokens, rows: int, first: int, last: int) -> Tokens:
    """Return `other` from place `first` on, for `rows` rows of last - first + 1 places: NOTHING where it has no such place."""
    places = np.arange(first, rows + last + 1)
    inside = (places >= 0) & (places < len(other))
    padded = np.full(len(places), _NOTHING, dtype=np.int64)
    padded[inside] = other[places[inside]]
    return padded


def _alike(token: object, other: Tokens) -> npt.NDArray[np.bool_]:
    return np.asarray(((token == other) | (token == HOLE) | (other == HOLE)) & (other != _NOTHING))
