"""Which send of one rank is which receive of another, and who of the two waited.

Both ends of a message leave it together, so the time that one lasts beyond the other is waiting for that other rank. Messages of
one communicator from one rank to another are matched as the calls of a communicator are (collectives.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nsightlens.columns.arrays import Int, Places, split
from nsightlens.matching.collectives import NAMED, CommunicationKernels, aligned


@dataclass(frozen=True, slots=True)
class Messages:
    """Kernels that send or receive, whose other end is known: columns of one length, two rows for each message.

    place: in Calls. peer: the other rank. wait: ns at its beginning that it waited for that rank; 0 for the later of the two.
    """

    place: Places
    peer: Int
    wait: Int


def messages(calls: CommunicationKernels, channel: Int, payload: Places) -> Messages:
    """Return the messages that could be matched. Of each kind of `calls`: a number for communicator, sender and receiver, -1
    where one is unknown; and the bytes, one number for all that are unknown."""
    channels = replace(calls, kinds=replace(calls.kinds, token=payload))
    places = calls.places(channel >= 0)
    ends = []
    for _, mine in split(places, channel[calls.kind[places]]):
        by_rank = dict(split(mine, calls.rank(mine)))
        matched = aligned(channels, by_rank, None, NAMED) if len(by_rank) == 2 else None
        ends += [] if matched is None else [matched.place.reshape(-1, 2)]
    pairs = np.concatenate(ends) if ends else np.empty((0, 2), np.int32)
    lasted = calls.end[pairs] - calls.start[pairs]
    wait = lasted - lasted.min(axis=1, keepdims=True)
    return Messages(pairs.reshape(-1), calls.rank(pairs[:, ::-1].reshape(-1)).astype(np.int64), wait.reshape(-1))
