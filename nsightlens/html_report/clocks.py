"""The steps of a page -> when each began on one clock over all ranks, as `rank_clock` corrects them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nsightlens.store.store import Store

_BEGUN = """
SELECT s.run, s.tool, f.execution_id, p.rank, s.process_id, s.window_index, s.step, f.origin_epoch_ns + s.start_ns AS begun_ns
FROM _steps AS s
JOIN profiles AS f ON s.profile_id = f.profile_id
JOIN processes AS p ON s.profile_id = p.profile_id AND s.process_id = p.process_id
WHERE f.origin_epoch_ns IS NOT NULL
"""
Key = tuple[str, int | None, int | None]
"""Process, window and step."""


def begun(store: Store) -> dict[Key, dict[str, Any]]:
    """Return by step: clock (which clock it is), clock_ns (its start after the first of all), clock_error_ns (how far that may be
    off; NULL for the reference). Steps of ranks without a fitted clock are not there."""
    clocks = {(row["run"], row["tool"], row["execution_id"], row["rank"]): row for row in store.view("rank_clock").to_pylist()}
    if not clocks:
        return {}
    found: dict[Key, dict[str, Any]] = {}
    first: dict[str, int] = {}
    for row in store.sql(_BEGUN).to_pylist():
        clock = clocks.get((row["run"], row["tool"], row["execution_id"], row["rank"]))
        if clock is None:
            continue
        name = ", ".join(filter(None, (f"rank {clock['reference_rank']}", row["run"], row["tool"], row["execution_id"])))
        at = row["begun_ns"] - (0 if clock["shares_clock"] else _ahead(clock, row["begun_ns"]))
        first[name] = min(at, first.get(name, at))
        found[row["process_id"], row["window_index"], row["step"]] = {
            "clock": name, "clock_ns": at, "clock_error_ns": clock["uncertainty_ns"]}
    return {key: row | {"clock_ns": row["clock_ns"] - first[row["clock"]]} for key, row in found.items()}


def _ahead(clock: dict[str, Any], at: int) -> int:
    """Return how far a clock is ahead of the reference at a time of its own; ns."""
    return int(clock["offset_ns"]) + int(clock["drift_ppb"]) * (at - int(clock["at_ns"])) // 1_000_000_000
