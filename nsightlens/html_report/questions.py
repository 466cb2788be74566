"""The views behind each tab of a report, with their parameters and columns, and the commands that print the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nsightlens.terminal.command import Command
from nsightlens.views import registry

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store

_IDS = ("profile_id", "process_id")
"""Ids that tell rows apart; all others are keys of tables that the page does not have."""


@dataclass(frozen=True, slots=True)
class PageView:
    """A view with its parameters, the columns of it that the page has (none: all but ids), and its name in the page."""

    view: str
    columns: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    key: str = ""
    only: str = ""
    """Column that must be true: other rows have nothing to show here."""
    is_long: bool = False
    """It has a row per event, and is left out first where the page becomes too large."""
    reads_launches: bool = False
    """It holds every launch in memory while it is computed, and is left out where there are too many."""

    @property
    def name(self) -> str:
        """Return the name of the table in the page."""
        return self.key or self.view

    def command(self, store: Store, runs: Sequence[str]) -> str:
        """Return the command line that prints these rows."""
        parameters = (f"{name}={value}" for name, value in self.parameters.items())
        return Command("show", (self.view, *parameters, *(("--run", run) for run in self._filter(store, runs)))).shell()

    def _filter(self, store: Store, runs: Sequence[str]) -> list[str]:
        """Return the runs that its rows must be of; none where all are meant, or where the view has no column for them."""
        return list(runs) if "run" in dict(store.views[self.view].columns) else []

    def count(self, store: Store, runs: Sequence[str]) -> int:
        """Return how many rows there are for these runs, without fetching those of a view in SQL."""
        view, only = store.views[self.view], self._only(store, runs)
        if not view.sql:
            return int(store.view(self.view, **self.parameters, **only).num_rows)
        query, values = registry.query(view, {**self.parameters, **only})
        return int(store.sql(f"SELECT count(*) AS rows FROM ({query})", values)["rows"][0].as_py())

    def _only(self, store: Store, runs: Sequence[str]) -> dict[str, object]:
        asked = self._filter(store, runs)
        return {"only_run": asked} if asked else {}

    def ask(self, store: Store, runs: Sequence[str]) -> pa.Table:
        """Return the rows for these runs (none: all)."""
        table = store.view(self.view, **self.parameters, **self._only(store, runs))
        names = self.columns or tuple(name for name in table.column_names if name in _IDS or not name.endswith("_id"))
        return (table.filter(table[self.only]) if self.only else table).select(names)


_DATASHEET = ("datasheet_gpu", "datasheet_peak_flop_per_s", "datasheet_peak_bytes_per_s", "datasheet_roof_pct")
"""The roof of a kernel where ncu did not measure it."""

QUESTIONS = (
    PageView("profile_overview"), PageView("diagnostic_summary"), PageView("attribution_coverage"), PageView("match_report"),
    PageView("verdict"), PageView("time_tree", (
        "run", "tool", "rank", "profile_id", "process_id", "device_id", "row_index", "parent_index", "depth", "node", "count",
        "total_ns", "share_pct")),
    PageView("findings"), PageView("speed_of_light"), PageView("execution_summary"), PageView("gpu_summary"),
    PageView("step_breakdown"), PageView("recommendations"),
    PageView("operator_summary"), PageView("operator_summary", parameters={"by_shapes": True}, key="operator_shapes"),
    PageView("operator_kernels"), PageView("operator_call_sites", is_long=True),
    PageView("kernel_summary"), PageView("kernel_by_rank"), PageView("kernel_by_config"), PageView("kernel_view"),
    PageView("timeline_kernels", ("run", "tool", "rank", "step", "family", "name", "start_ns", "duration_ns"), is_long=True),
    PageView("straggler"), PageView("rank_skew"), PageView("rank_clock"), PageView("communicator_summary"),
    PageView("collective_summary"), PageView("distributed_overview"),
    PageView("collective_match", (
        "run", "tool", "step", "group_name", "collective", "call_index", "message_bytes", "rank", "arrival_ns", "wait_ns",
        "transfer_ns", "last_rank", "lag_ns", "lag_threshold_ns"), is_long=True),
    PageView("memory_peak"), PageView("memory_by_operator"), PageView("memory_curve", is_long=True),
    PageView("memory_events", is_long=True),
    PageView("module_summary"),
    PageView("true_roofline", (
        "run", "rank", "gpu", "name", "family", "level", "precision", "is_main", "time_tool", "time_grade",
        "launches", "duration_ns", "work_source", "work_flop", "traffic_bytes", "achieved_flop_per_s", "arithmetic_intensity",
        "ncu_duration_ns", "ncu_achieved_flop_per_s", "peak_flop_per_s", "peak_bytes_per_s", "roof_pct", *_DATASHEET,
        "simulated"), only="plottable", reads_launches=True),
    PageView("roofline", (
        "run", "rank", "gpu", "name", "family", "level", "precision", "is_main", "launches", "duration_ns",
        "work_flop", "traffic_bytes", "achieved_flop_per_s", "arithmetic_intensity", "peak_flop_per_s", "peak_bytes_per_s",
        "roof_pct", *_DATASHEET, "simulated"), only="plottable"),
    PageView("headroom", reads_launches=True),
    PageView("cuda_api_summary"), PageView("memory_op_summary"), PageView("synchronization_summary"), PageView("nvtx_summary"),
    PageView("nvtx_gpu_projection", reads_launches=True), PageView("os_call_summary"),
)


def comparison(base: str, other: str) -> tuple[PageView, ...]:
    """Return what is asked of two runs."""
    two = {"base": base, "other": other}
    return tuple(PageView(view, parameters=two) for view in ("run_waterfall", "run_difference", "comparability"))
