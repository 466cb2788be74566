"""Sets of intervals on a timeline: int64 arrays in, int64 arrays out, exact.

An interval is half open: [start, end) holds its start and not its end. One whose end is not after its start holds no instant, and
so covers nothing. Any int64 may be a time; NULL (MISSING) is none, and is left out before. Where `track` is given, the intervals
of each track are a set of their own.

Intervals come in any order, unless a function says otherwise, and those that begin at once keep theirs. Sorted ones (by track,
then start) cost a linear pass, without a copy.
"""
