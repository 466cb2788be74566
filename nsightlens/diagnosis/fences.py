"""Device synchronizations before a capture's first operator and launch: whoever measures makes them, the job does not."""

from __future__ import annotations

import re

import numpy as np

from nsightlens.columns.arrays import Mask, split
from nsightlens.diagnosis.profile_arrays import ProfileArrays

_OF_ALL = re.compile(r"(Device|Ctx|Context)Synchronize")
_NEVER = np.iinfo(np.int64).max


def fences(recorded: ProfileArrays) -> Mask:
    """Return which API calls wait for work that was launched before anything of their process was recorded."""
    calls, ranges = recorded.calls, recorded.ranges.spans
    spans = calls.spans
    steps = recorded.ranges.kind == recorded.codes.get("step", -2)
    is_fence = calls.waits & recorded.named(spans, _OF_ALL)
    for process, places in split(np.flatnonzero(is_fence), spans.process[is_fence]):
        for number, waits in split(places, spans.window[places]):
            used = (calls.launches | calls.copies) & (spans.process == process) & (spans.window == number)
            marked = (ranges.process == process) & (ranges.window == number) & ~steps
            first = np.concatenate([spans.start[used], ranges.start[marked]]).min(initial=_NEVER)
            is_fence[waits] = spans.start[waits] < first
    return is_fence
