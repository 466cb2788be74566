"""Where things lie: the checkout, the real captures beside it (absent in a user's clone), and the cache of the tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OWN_CACHE = "NSIGHTLENS_TESTS_OWN_CACHE"
"""The variable that says that XDG_CACHE_HOME is of this session alone: the workers of xdist share that of their session."""
NSYS_CAPTURES = ROOT.parent / "shared" / "data" / "nsys"
NCU_REPORTS = sorted((ROOT.parent / "shared" / "data" / "ncu" / "rep").glob("*.ncu-rep"))


def sqlite_captures() -> list[Path]:
    """Return the real nsys exports that are SQLite databases, whatever other files are called so (Git LFS pointers)."""
    return [path for path in sorted(NSYS_CAPTURES.glob("*.sqlite")) if path.read_bytes()[:16] == b"SQLite format 3\0"]
