"""What one file may cost its reader, whatever its format: so that a small one holds no worker and fills neither memory nor disk.

No sound capture meets it: traces unpack to 10 to 60 times their size, and no text of a profiler is longer than some KiB. Where it
ends a read, what came before is kept, and the reader says so under the code OVER_BUDGET.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

OVER_BUDGET = "over_budget"


@dataclass(frozen=True, slots=True)
class Budget:
    """longest: bytes of one event, row or line. unpacked: bytes that any packed file may unpack to, and density: how many times
    its own size beyond that. idle: bytes on end that are looked through and hold no event."""

    longest: int = 1 << 24
    unpacked: int = 5 << 28
    density: int = 200
    idle: int = 1 << 26

    def most_of(self, size: int) -> int:
        """Return how many bytes a packed file of `size` bytes may unpack to."""
        return max(self.unpacked, self.density * size)


BUDGET = Budget()


def most_unpacked(path: Path) -> int:
    """Return how many bytes a packed file may unpack to. Raises OSError."""
    return BUDGET.most_of(path.stat().st_size)


def too_dense() -> str:
    """Return why a packed file was not read to its end."""
    return f"it unpacks to more than {BUDGET.density} times its size, as no capture does"


def read_upto(unpacked: int) -> str:
    """Return the sentence that says that only so many bytes of a packed file were read, and what to do."""
    return (f"{too_dense()}: the first {unpacked:,} bytes were read, and whatever follows them is missing. If it is a sound "
            "capture, unpack it (gunzip) and ingest what that gives")
