"""How long each kernel is on the critical path of its process: what a faster kernel can shorten the process by at most."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsightlens.analyses import Ask
from nsightlens.analyses._activity import BOUNDS
from nsightlens.analyses.critical_path import ProcessPath, paths
from nsightlens.columns.arrays import Int

WINDOW = ("profile_id", "process_id", "window_index")


class OnPath:
    """Time of each kernel on the critical path of its process. windows: the processes and windows that have a path."""

    def __init__(self, ask: Ask) -> None:
        self.windows: set[tuple[Any, ...]] = set()
        ids, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for who, found, length in map(self._process_lengths, paths(ask)):  # holds one process at a time
            self.windows |= who
            ids += found
            lengths += length
        order = np.argsort(np.concatenate(ids))
        self._ids, self._lengths = np.concatenate(ids)[order], np.concatenate(lengths)[order]

    @staticmethod
    def _process_lengths(process: ProcessPath) -> tuple[set[tuple[Any, ...]], list[Int], list[Int]]:
        ids, lengths, work_ids = [], [], process.work_ids.to_numpy()
        who: set[tuple[Any, ...]] = set()
        for part in process.path.segments():
            who.add(tuple(process.who[name] for name in WINDOW))
            kernels = part.bound < BOUNDS.index("memory")
            ids.append(work_ids[part.work[kernels]])
            lengths.append((part.end - part.start)[kernels])
        return who, ids, lengths

    def of(self, kernel_ids: Int) -> Int:
        """Return how long each kernel is on the path, ns. A path passes through a kernel once."""
        if not len(self._ids):
            return np.zeros(len(kernel_ids), np.int64)
        place = np.minimum(np.searchsorted(self._ids, kernel_ids), len(self._ids) - 1)
        return np.where(self._ids[place] == kernel_ids, self._lengths[place], 0)
