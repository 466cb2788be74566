"""nsightlens: one kernel table from Nsight Systems, Nsight Compute and the PyTorch profiler, for all ranks.

    import nsightlens as nl
    store = nl.ingest(["runs/base"], store="store")     # then, or later: nl.open("store")
    store.view("kernel_summary").to_pandas()
    store.sql("SELECT rank, family, sum(duration_ns) FROM timeline_kernels GROUP BY ALL")

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    import pyarrow as pa

    from nsightlens import plots as plots
    from nsightlens.store import Store

__version__ = "0.1.0"
__all__ = ["__version__", "ingest", "open", "plots", "read"]


def ingest(
    paths: Sequence[str | Path] | str | Path, store: str | Path | None = None, *, run: str | None = None,
    rank_pattern: str | None = None, jobs: int | None = None, materialise: bool = True, executor: Executor | None = None,
) -> Store:
    """Read the captures below `paths` into the store and return it, opened. See `nsightlens.road.ingest`."""
    from pathlib import Path as _Path

    road = import_module("nsightlens.road")
    roots = [paths] if isinstance(paths, (str, _Path)) else list(paths)
    report = road.ingest(roots, store, run=run, rank_pattern=rank_pattern, jobs=jobs, materialise=materialise, executor=executor)
    return open(report.store)


def open(store: str | Path | None = None) -> Store:
    """Return the store at `store` (else $NSIGHTLENS_STORE, else ./nsightlens-store), opened for reading.

    Raises StoreError where there is none.
    """
    from nsightlens.store import Store, locate

    return Store(locate(store))


def read(path: str | Path) -> dict[str, pa.Table]:
    """Return the tables of one capture, normalised as in a store but without one. Raises ReadError where it can't be read."""
    return import_module("nsightlens.road").read_one(path)  # type: ignore[no-any-return]


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module("nsightlens.plots")
    raise AttributeError(f"module 'nsightlens' has no attribute {name!r}")
