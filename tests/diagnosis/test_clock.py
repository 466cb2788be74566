"""Whether the GPU slowed down, on kernels worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nsightlens.columns.arrays import Int
from nsightlens.diagnosis.clock import slowed_ns
from nsightlens.diagnosis.profile_arrays import COMPUTING, KERNEL, GpuWork
from nsightlens.diagnosis.window import Window


def work(kinds: int, lengths: Int) -> GpuWork:
    """Return launches of kernels, every 1,000 ns; lengths: of each launch in order, for the n-th kernel times n + 1."""
    count = kinds * len(lengths)
    start = np.arange(count, dtype=np.int64) * 1000
    name = np.tile(np.arange(kinds, dtype=np.int64), len(lengths))
    columns = {column: np.zeros(count, np.int64) for column in GpuWork.__slots__}
    end = start + np.repeat(lengths, kinds) * (name + 1)
    kernels = np.full(count, KERNEL), np.full(count, COMPUTING)
    return GpuWork(**columns | {"start": start, "end": end, "name": name, "kind": kernels[0], "branch": kernels[1]})


@pytest.mark.parametrize(("kinds", "last", "slowed"), [
    (2, 108, 10 * (8 + 16)),    # both kernels are 8 % longer in ten launches each
    (2, 105, 0),                # GPUs vary so
    (2, 400, 0),                # no clock falls as far: larger work
    (1, 108, 0),                # the only kernel there is may have got more work
])
def test_a_gpu_that_slows_down(kinds: int, last: int, slowed: int) -> None:
    lengths = np.array([100] * 20 + [last] * 10, np.int64)
    done = work(kinds, lengths)
    assert slowed_ns(done, Window(0, 3 * 10 * kinds * 1000)) == slowed
