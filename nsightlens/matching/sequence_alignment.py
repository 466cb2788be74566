"""Two recordings of one sequence -> the places that certainly are the same place. Pure numbers: no tables, no names.

A recording is an array of tokens (equal token = could be the same launch), HOLE for a place where something stood that was
not recorded. Recordings lack items at both ends and in between, and neighbours may be swapped. A pair is *certain* when it is
part of every alignment with the most matches, and none of these (where both sides have items without a partner: none with
one match fewer either) gives one of the two another partner. Two neighbours that were swapped cannot both be part of one
alignment: they are certain if nothing else competes with them. If one recording only lacks items of the other, a certain
pair is never wrong: the true alignment is one of those looked at. Where a stretch of pairs fits elsewhere about as well
(steps that repeat, and one recording holds more of them), none of it is certain. What is not certain is left out: never first
come, first served.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nsightlens.columns.arrays import Int, Mask

Tokens = npt.NDArray[Any]
"""Integers."""
HOLE = -1
_FULL = 64
"""Worth of a pair where some are worth less: shares are in parts of this."""
LARGEST = 24_000_000
"""The most pairs of places that are looked at, at about 12 bytes of working memory each."""
_AT_ONCE = 1 << 20
"""Pairs of places that are compared at once."""


def certain_pairs(one: Tokens, other: Tokens, whole: bool = False) -> Int | None:
    """Return the certain pairs as an (n, 2) array of places, in the order of `one`.

    whole: the recordings may cover stretches of several lengths; else both cover the same, and only lack single items.
    None where the recordings are too long and differ too much to look at every alignment that could matter. A pair may be that of
    an item and a HOLE, never of two. Time and memory: the length times twice the number of items that have no partner, at least.
    """
    if len(one) == len(other) and bool(np.all(_alike(one, other))):
        places = np.flatnonzero((one != HOLE) | (other != HOLE))
        return np.stack([places, places], axis=1)
    shorter, apart = min(len(one), len(other)), abs(len(one) - len(other))
    spare = 64 if len(one) * len(other) > LARGEST // 2 else max(len(one), len(other))
    while len(one) * (apart + 2 * spare + 1) <= 2 * LARGEST:
        band = _band(one, other, spare, shorter - spare + 1)
        if band is not None:  # an alignment that strays farther has fewer matches than are looked at
            return _certain(one, other, band, whole)
        spare *= 2
    return None


@dataclass(frozen=True, slots=True)
class _Band:
    """Pairs of places near the diagonal: row i of both arrays holds the places first + i … last + i of `other`.

    through: the most matches of an alignment that pairs the two, 0 where they are not alike. before: how many of these come
    before the pair.
    """

    first: int
    last: int
    through: npt.NDArray[np.int32]
    before: npt.NDArray[np.int32]

    @property
    def best(self) -> int:
        return int(self.through.max(initial=0))


def _certain(one: Int, other: Int, band: _Band, whole: bool) -> Int:
    found = _alone(one, other, band, 0)
    items = found[(one[found[:, 0]] != HOLE) & (other[found[:, 1]] != HOLE)]
    leftover = [np.setdiff1d(np.flatnonzero(side != HOLE), items[:, place]).size for place, side in enumerate((one, other))]
    found = _alone(one, other, band, 1) if all(leftover) else found
    return found[_kept(one, other, band, found, whole)]


def _kept(one: Int, other: Int, band: _Band, found: Int, whole: bool) -> Mask:
    """Return which of the pairs stand also where each counts a little less than any other pair.

    Those that do not are of a stretch that fits elsewhere about as well: both repeat themselves, and what either lacks decides
    where it fits best. How much less: all together by what of the shorter has no partner; of a `whole` recording, which may hold
    more repetitions, also by what the longer has more, up to an eighth of the shorter.
    """
    shorter, apart = min(len(one), len(other)), abs(len(one) - len(other))
    doubt = max(shorter - band.best, min(apart, shorter // 8) if whole else 0)
    if not len(found) or not doubt:
        return np.ones(len(found), dtype=np.bool_)
    weight = _FULL * max(len(found) - doubt, 0) // len(found)
    doubted = np.full(len(one), _NOTHING)
    doubted[found[:, 0]] = found[:, 1]
    most = _doubted(one, other, band.first, band.last, doubted, weight)
    partner = _path(most, band.first, len(other))
    row, column = found[:, 0] + 1, found[:, 1]
    # of two neighbours that were swapped only one is part of an alignment
    kept: Mask = (partner[row] == column) | (partner[row - 1] == column + 1) | (partner[row + 1] == column - 1)
    # what is left of a stretch is no surer than the stretch: a run of pairs falls with a longer one beside it
    ends = np.concatenate([[0], np.flatnonzero(np.diff(kept)) + 1, [len(kept)]])
    length = np.diff(ends)
    beside = np.maximum(np.append(length[1:], 0), np.append(0, length[:-1]))
    return np.repeat(kept[ends[:-1]] & (length > beside), length)


def _path(most: npt.NDArray[np.int32], first: int, last: int) -> Int:
    """Return the partner of each place of `one` in an alignment that is worth most, NOTHING for none. most: see _doubted.

    There is a NOTHING before the first place, and one behind the last.
    """
    partner = np.full(len(most) + 1, _NOTHING)
    i, j = len(most) - 1, min(last, len(most) - 1 + first + most.shape[1] - 1)
    while i > 0 and j > 0:
        here = most[i, j - i - first]
        above = j - i + 1 - first  # the same place of `other`, one place of `one` before
        if above < most.shape[1] and most[i - 1, above] == here:
            i -= 1
        elif j > i + first and most[i, j - 1 - i - first] == here:
            j -= 1
        else:
            i, j = i - 1, j - 1
            if most[i, j - i - first] < here:  # else a step along the edge of the band: the two are not alike
                partner[i + 1] = j
    return partner


def _alone(one: Int, other: Int, band: _Band, slack: int) -> Int:
    """Return the certain pairs, no member of which has another partner in alignments with up to `slack` matches fewer."""
    row, place = np.nonzero(band.through >= max(band.best - slack, 1))
    column = row + place + band.first
    alone = (np.bincount(row, minlength=len(one))[row] == 1) & (np.bincount(column, minlength=len(other))[column] == 1)
    among_best = band.through[row, place] == band.best
    # each of the best alignments has one match at every height: a pair that is alone at its height is in all of them
    height = band.before[row, place]
    at_height = np.bincount(height[among_best])
    alone &= among_best & ((one[row] != HOLE) | (other[column] != HOLE))
    lonely = alone & (at_height[height] == 1)
    pairs = np.flatnonzero(alone & (at_height[height] == 2))
    swapped = pairs[:-1][(np.diff(height[pairs]) == 0) & (np.diff(row[pairs]) == 1) & (np.diff(column[pairs]) == -1)]
    lonely[swapped] = True
    lonely[pairs[np.searchsorted(pairs, swapped) + 1]] = True
    return np.stack([row[lonely], column[lonely]], axis=1)


def _band(one: Int, other: Int, spare: int, least: int = 0) -> _Band | None:
    """Return the pairs of places within `spare` of the diagonals on which the two begin and end together.

    None where no alignment of these has `least` matches.
    """
    first = max(min(0, len(other) - len(one)) - spare, -len(one))
    last = min(max(0, len(other) - len(one)) + spare, len(other))
    before = _prefixes(one, other, first, last, least)
    after = None if before is None else _prefixes(
        one[::-1], other[::-1], len(other) - len(one) - last, len(other) - len(one) - first)
    if before is None or after is None:
        return None
    through = after[:-1][::-1, ::-1]
    through += before[:-1]
    through += 1
    for rows, alike in _alike_rows(one, other, first, last):
        through[rows] *= alike
    return _Band(first, last, through, before[:-1])


def _prefixes(one: Int, other: Int, first: int, last: int, least: int = 0) -> npt.NDArray[np.int32] | None:
    """Return the most matches between the first i of `one` and the first j of `other`; row i holds j = i + first … i + last.

    None as soon as it shows that all of both have fewer than `least`.
    A place holds what its left neighbour holds, or one more. So a row is a number with a bit for each that is as its neighbour,
    and the next row follows by one addition (Crochemore and others, A fast and practical bit-vector algorithm for the longest
    common subsequence problem, 2001).
    """
    width = last - first + 1
    size, every, behind = -(-width // 8), (1 << width) - 1, 1 << width - 1
    most = np.zeros((len(one) + 1, width), dtype=np.int32)
    level, base = every, 0
    for rows, alike in _alike_rows(one, other, first, last):
        masks, levels = np.packbits(alike, axis=1, bitorder="little").tobytes(), []
        for place in range(0, len(masks), size):
            matches = level & int.from_bytes(masks[place : place + size], "little")
            level = (level + matches | level - matches) & every
            levels.append(level.to_bytes(size, "little"))
            level = level >> 1 | behind  # the next row begins a place further on
        bits = np.frombuffer(b"".join(levels), np.uint8).reshape(-1, size)
        rises = np.unpackbits(bits, axis=1, count=width, bitorder="little") ^ 1
        found = most[rows.start + 1 : rows.stop + 1]
        np.cumsum(rises, axis=1, dtype=np.int32, out=found)
        found += np.cumsum(np.append(base, found[:-1, 0]), dtype=np.int32)[:, None]
        base = int(found[-1, 0])
        if int(found[-1, -1]) + len(one) - rows.stop < least:
            return None
    return most


def _doubted(one: Int, other: Int, first: int, last: int, doubted: Int, weight: int) -> npt.NDArray[np.int32]:
    """Return what `_prefixes` returns, where pairs are worth FULL each, but `weight` if they are doubted.

    doubted: per place of `one` the place of `other` (NOTHING: none).
    """
    most = np.zeros((len(one) + 1, last - first + 1), dtype=np.int32)
    for rows, alike in _alike_rows(one, other, first, last):
        worth = np.where(alike, np.int32(_FULL), np.int32(0))
        those = np.flatnonzero(doubted[rows] != _NOTHING)
        worth[those, doubted[rows][those] - those - rows.start - first] = weight
        for i, pairs in enumerate(worth, rows.start):
            row = most[i + 1]
            row[:-1] = most[i, 1:]  # the same place of `other`, one place of `one` before
            np.maximum(row[:-1], most[i, :-1] + pairs[:-1], out=row[:-1])
            row[-1] = most[i, -1] + pairs[-1]
            np.maximum.accumulate(row, out=row)
    return most


_NOTHING = -2
"""A place before or after the recording: like nothing, not even a HOLE."""


def _alike_rows(one: Int, other: Int, first: int, last: int) -> Iterator[tuple[slice, Mask]]:
    """Yield stretches of `one`, and which of the places first … last of `other`, counted from each item, are like it."""
    width, padded = last - first + 1, _padded(other, len(one), first, last)
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)
    step = max(1, _AT_ONCE // width)
    for begin in range(0, len(one), step):
        rows = slice(begin, min(begin + step, len(one)))
        yield rows, _alike(one[rows, None], windows[rows])


def _padded(other: Int, rows: int, first: int, last: int) -> Int:
    """Return `other` from place `first` on, for `rows` rows of last - first + 1 places: NOTHING where it has no such place."""
    places = np.arange(first, rows + last + 1)
    inside = (places >= 0) & (places < len(other))
    padded = np.full(len(places), _NOTHING, dtype=np.int64)
    padded[inside] = other[places[inside]]
    return padded


def _alike(token: Int, other: Int) -> Mask:
    found: Mask = ((token == other) | (token == HOLE) | (other == HOLE)) & (other != _NOTHING)
    return found
