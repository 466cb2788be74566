"""What CUPTI says of waits: which work a call awaited, and which work a stream awaited before it went on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nsightlens.columns.arrays import Int, Mask


class RecordedWaits:
    """The waits of a process whose calls are known, against its work, which is in order of its end.

    of_wait: the work that each wait is for, -1 for none. is_by_host: whether that is known, and a call of the host waits.
    by_streams: whether there are waits of streams; awaited: for each piece of work the last to end of what its stream was told
    to wait for since the work before it, else -1; is_open: whether it was told to wait for something that is not known.
    """

    def __init__(self, waits: pa.Table, queue: Int, ends: Int, launched: Int) -> None:
        """Waits: by_stream, queue (that waits), awaited (queue), until_ns (what is launched there later is not meant).

        is_known: whether the last two are. A wait by the host has an end, too: what it awaits had ended. queue, ends, launched:
        of each piece of work its queue, when it ended, and when its call began. Where that is MISSING, it was launched with
        the work before it in its queue.
        """
        at, until, end, queues, awaited, by_stream, is_known = (waits[name].to_numpy() for name in (
            "call_start_ns", "until_ns", "end_ns", "queue", "awaited", "by_stream", "is_known"))
        self.of_wait = np.full(len(at), -1)
        self.is_by_host: Mask = ~by_stream & is_known
        self.by_streams = bool(by_stream.any())
        self.awaited, self.is_open = np.full(len(queue), -1), np.zeros(len(queue), np.bool_)
        works = {number: np.flatnonzero(queue == number) for number in {*queues.tolist(), *awaited.tolist()}}
        begun = {number: np.maximum.accumulate(launched[work]) for number, work in works.items()}
        for number, work in works.items():
            mine = np.flatnonzero(awaited == number)
            ended = np.searchsorted(ends[work], end[mine], "right")
            last = np.minimum(np.searchsorted(begun[number], until[mine], "left"), ended)
            self.of_wait[mine[last > 0]] = work[last[last > 0] - 1]
        for number, work in works.items():
            mine = np.flatnonzero(by_stream & (queues == number))
            following = np.searchsorted(begun[number], at[mine], "right")
            mine, following = mine[following < len(work)], work[following[following < len(work)]]
            np.maximum.at(self.awaited, following, np.where(is_known[mine], self.of_wait[mine], -1))
            self.is_open[following[~is_known[mine]]] = True
