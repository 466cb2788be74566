"""Less memory for our processes: pandas is not imported, and freed blocks go back to the system."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2
_LARGE_BLOCK = 1 << 20
"""Above a column of one batch: those come and go all the time, and each new block is zeroed page by page by the kernel."""
_KEPT = 1 << 25
"""What may lie free at the end of the heap, for the same reason."""


class _WithoutPandas:
    """An import finder that knows for certain that there is no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise ImportError for pandas; leave every other module to the other finders."""
        if name == "pandas":
            raise ImportError("not needed here")


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas (0.3 s, 50 MB) only to ask whether a list is a Series. For processes of our own.

    pyarrow remembers the answer, and to_pandas() asks again.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder: Any = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def return_memory() -> None:
    """Have the C library give every large block back when it is freed. For processes of our own, before pyarrow is imported.

    By default glibc raises the size from which it does so with use, and keeps a heap per thread: hundreds of MB in fragments.
    So does Arrow's own pool, which therefore is left out.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give all freed memory back at once, for another library is about to take much."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
