"""Where things lie: the checkout, and the real captures beside it (absent in a user's clone)."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NSYS_CAPTURES = ROOT.parent / "shared" / "data" / "nsys"
NCU_REPORTS = sorted((ROOT.parent / "shared" / "data" / "ncu" / "rep").glob("*.ncu-rep"))


def sqlite_captures() -> list[Path]:
    """Return the real nsys exports that are SQLite databases, whatever other files are called so (Git LFS pointers)."""
    return [path for path in sorted(NSYS_CAPTURES.glob("*.sqlite")) if path.read_bytes()[:16] == b"SQLite format 3\0"]
