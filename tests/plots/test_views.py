"""The plots of views: what is drawn where, read back from the figure; never pixels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens import plots
from nsightlens.errors import NsightlensError
from nsightlens.plots import frame
from nsightlens.views import registry

WHERE = {"run": "base", "tool": "kineto", "profile_id": "P", "window_index": 0, "process_id": "P:0", "device_id": "P:0/gpu0"}
MS = 1_000_000


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([WHERE | {"rank": 0} | row for row in rows])


def step(number: int | None, **more: Any) -> dict[str, Any]:
    parts = {"kernel_ns": 60, "memcpy_ns": 10, "memset_ns": 0, "communication_ns": 10, "runtime_ns": 5, "data_loader_ns": 0,
             "cpu_exec_ns": 10, "other_ns": 5}
    return {"step": number, "step_id": number, "step_ns": 100 * MS} | {name: ns * MS for name, ns in parts.items()} | more


def titles(figure: Figure) -> str:
    above = [part.get_suptitle() for part in (figure, *figure.subfigs)]
    return "\n".join([*above, *(axes.get_title(loc="left") for axes in figure.axes)])


def legends(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def heights(axes: Axes) -> list[float]:
    return [float(bar.get_height()) for bar in axes.patches]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in plots.PLOTS if name != "roofline"])
def test_a_plot_has_its_view_and_says_what_an_empty_one_lacks(name: str) -> None:
    view = registry.known()[name]
    assert name not in ("", None) and (plots.PLOTS[name].__doc__ or "").startswith("Return")
    with pytest.raises(NsightlensError, match="nothing to draw"):
        plots.PLOTS[name](pa.table({column: pa.array([], pa.null()) for column, _ in view.columns}))


def test_of_many_steps_each_bar_is_the_mean_of_several() -> None:
    figure = plots.step_breakdown(table(*(step(number) for number in range(10_000, 10_450))))
    (axes,) = (axes for axes in figure.axes if axes.get_visible())
    assert axes.get_xlabel() == "Step (each bar: the mean of 3)"
    assert len({patch.get_x() for patch in axes.patches}) == 150, "all 450 steps are in it"  # type: ignore[attr-defined]
    assert sum(heights(axes)) == pytest.approx(150 * sum(heights(plots.step_breakdown(table(step(1))).axes[0])))
    shown = [text.get_text() for text in axes.get_xticklabels()]
    assert shown[:2] == ["10000", "10057"] and sum(len(text) + 2 for text in shown) <= 60


def test_steps_are_stacked_in_one_unit() -> None:
    figure = plots.step_breakdown(table(step(1), step(2), step(1, rank=1, process_id="Q:0"), step(2, rank=1, process_id="Q:0")),
                                  gpus={("base", "kineto"): "A100"})
    first, second = (axes for axes in figure.axes if axes.get_visible())
    assert sum(heights(first)) == pytest.approx(200) and "(ms)" in figure.get_supylabel()
    assert first.get_title(loc="left") == "rank 0" and second.get_title(loc="left") == "rank 1"
    assert "base, kineto, A100" in titles(figure)
    assert legends(figure) == ["kernel", "memcpy", "communication", "runtime", "CPU exec", "other"], "what is 0 has no entry"


def test_runs_of_another_length_have_their_own_unit() -> None:
    quick = dict.fromkeys(step(1), 0) | {"run": "quick", "step": 1, "step_id": 1, "step_ns": 100_000, "kernel_ns": 100_000}
    slow = quick | {"rank": 1, "process_id": "Q:0", "step_ns": 150_000, "kernel_ns": 150_000}
    rows = [quick, quick | {"step": 2}, slow, slow | {"step": 2}]
    figure = plots.step_breakdown(table(step(1), step(2), *rows))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [(axes.get_ylabel(), round(sum(heights(axes)))) for axes in shown] == [("ms", 200), ("µs", 200), ("µs", 300)]
    assert shown[1].get_ylim() == shown[2].get_ylim() and shown[1].get_ylim()[1] >= 150 and figure.get_supylabel() == "Time"


def test_processes_with_one_row_each_share_a_panel() -> None:
    figure = plots.step_breakdown(table(*(step(None, rank=rank, process_id=f"P:{rank}") for rank in range(8))))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == [str(rank) for rank in range(8)]
    assert "no steps were recorded" in titles(figure) and axes.get_xlabel() == "Rank (whole capture)"


def test_temporal_breakdown_writes_shares_and_keeps_tools_apart() -> None:
    row = {"span_ns": 100 * MS, "idle_ns": 20 * MS, "compute_ns": 50 * MS, "non_compute_ns": 30 * MS, "unknown_ns": 0}
    figure = plots.temporal_breakdown(table(row, row | {"tool": "nsys"}))
    assert len(figure.axes) == 2
    for axes in figure.axes:
        assert {text.get_text() for text in axes.texts} == {"50.0 %", "30.0 %", "20.0 %"}
        assert axes.get_xlabel() == "Time (ms)"
    assert "base, nsys" in titles(figure) and "unknown (graphs)" not in legends(figure)


def test_kinds_of_work_are_bars_on_one_scale() -> None:
    rows = [{"class": kind, "total_ns": ns * MS * scale, "rank": rank, "process_id": f"P:{rank}", "run": run}
            for run, scale in (("base", 1), ("long", 2)) for rank in range(2)
            for kind, ns in (("compute", 60), ("communication", 20), ("idle", 20))]
    figure = plots.kernel_type_breakdown(table(*rows))
    assert len(figure.axes) == 2
    for axes, shares in zip(figure.axes, (60, 20), strict=True):
        assert [label.get_text() for label in axes.get_yticklabels()] == ["rank 0", "rank 1"]
        assert f"{shares:.1f} %" in {text.get_text() for text in axes.texts} and axes.get_xlim() == (0, 200)
    assert {"compute", "communication", "idle"} == set(legends(figure)), "what did not occur has no entry"


def test_more_gpus_than_fit_are_one_bar() -> None:
    rows = [{"class": "compute", "total_ns": MS, "rank": rank, "process_id": f"P:{rank}"} for rank in range(100)]
    (axes,) = plots.kernel_type_breakdown(table(*rows)).axes
    assert re.fullmatch(r"\d+ more, their mean", axes.get_yticklabels()[-1].get_text())


def test_top_kernels_have_the_colour_of_their_family() -> None:
    figure = plots.top_kernels(table(
        {"name": "void a$b<float>(int)", "family": "gemm", "total_ns": 3 * MS, "time_pct": 75.0, "instances": 1500},
        {"name": "nccl", "family": "collective", "total_ns": MS, "time_pct": 25.0, "instances": 2}))
    (axes,) = figure.axes
    assert axes.patches[0].get_facecolor()[:3] == pytest.approx((0, 0x72 / 255, 0xB2 / 255))
    assert [text.get_text() for text in axes.texts] == ["75.0 %, 1,500×", "25.0 %, 2×"]
    assert axes.get_yticklabels()[0].get_text() == r"a\$b<float>", "no mathematics out of names"


def test_operators_are_summed_over_processes() -> None:
    row = {"name": "aten::mm", "device_self_ns": 3 * MS, "host_self_ns": MS, "calls": 2}
    other = {"name": "aten::add", "device_self_ns": 2 * MS, "host_self_ns": 9 * MS, "calls": 1}
    (axes,) = plots.operator_summary(table(row, other, row | {"process_id": "Q:0"})).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["aten::mm", "aten::add"]
    assert [text.get_text() for text in axes.texts] == ["75.0 %, 4×", "25.0 %, 1×"] and axes.get_xlabel().startswith("GPU")
    (axes,) = plots.operator_summary(table(row | {"device_self_ns": None}, other | {"device_self_ns": None})).axes
    assert axes.get_xlabel().startswith("Host") and axes.get_yticklabels()[0].get_text() == "aten::add"


def test_operators_that_would_be_0_percent_have_no_bar() -> None:
    row = {"name": "aten::mm", "device_self_ns": 10_000, "host_self_ns": 10_000, "calls": 1, "process_id": "P:0"}
    small = [row | {"name": f"aten::{ns}", "device_self_ns": ns} for ns in (4, 6, 0)]
    (axes,) = plots.operator_summary(table(row, *small)).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["aten::mm", "aten::6"]
    assert axes.get_xlabel().endswith("; 2 more take less")


def test_ranks_wait_and_transfer_beside_where_their_steps_went() -> None:
    rows = [{"rank": rank, "process_id": f"P:{rank}", "step": step, "computation_ns": 50 * MS, "overlapping_ns": 10 * MS,
             "communication_ns": 20 * MS, "other_ns": 20 * MS, "synchronizing_ns": 12 * MS, "transfer_ns": 8 * MS}
            for rank in range(2) for step in range(3)]
    left, right = plots.distributed_overview(table(*rows)).axes
    assert sum(heights(left)) == pytest.approx(200) and sum(heights(right)) == pytest.approx(40)
    assert "(ms)" in left.get_ylabel() and [label.get_text() for label in left.get_xticklabels()] == ["0", "1"]
    unknown = [row | {"synchronizing_ns": None, "transfer_ns": None} for row in rows]
    left, right = plots.distributed_overview(table(*unknown)).axes
    assert "not known" in right.texts[0].get_text() and not right.patches


def test_many_runs_are_drawn_in_part_and_it_says_so() -> None:
    row = {"step": 1, "computation_ns": 9, "overlapping_ns": 0, "communication_ns": 1, "other_ns": 0, "synchronizing_ns": None,
           "transfer_ns": None}
    figure = plots.distributed_overview(table(*(row | {"run": f"r{number}"} for number in range(30))))
    assert len(figure.subfigs) == 8 and figure.get_figheight() < 26
    assert "22 more runs and tools are not drawn" in figure.legends[0].get_title().get_text()


def test_memory_has_a_panel_per_device_and_its_peak() -> None:
    rows = [{"device_type": device, "device": None if device == "cpu" else 0, "at_ns": at * MS, "allocated_bytes": size * 2**20,
             "reserved_bytes": 2**30, "net_bytes": 0}
            for device in ("cpu", "cuda") for at, size in enumerate((100, 300, 200))]
    figure = plots.memory_curve(table(*rows))
    assert [axes.get_title(loc="left").rsplit(", ", 1)[1] for axes in figure.axes] == ["CUDA 0", "CPU"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["peak 0.293 GiB"]
    without = [row | {"allocated_bytes": None, "reserved_bytes": None, "net_bytes": 5} for row in rows]
    since = plots.memory_curve(table(*without))
    assert "Since the start" in since.axes[0].get_ylabel()
    assert [[text.get_text() for text in found.legends[0].get_texts()] for found in (figure, since)] == [
        ["allocated", "reserved by the allocator"], ["allocated"]]
    unknown = [row | {"net_bytes": None} for row in without]
    with pytest.raises(NsightlensError, match="nothing to draw"):
        plots.memory_curve(table(*unknown))
    assert len(plots.memory_curve(table(*rows[:3], *unknown[3:])).axes) == 1, "no panel where no size is known"


def test_queues_have_a_line_per_stream() -> None:
    rows = [{"stream": stream, "context": 1, "at_ns": at * MS, "length": at % 3} for stream in (7, 20) for at in range(9)]
    (axes,) = plots.queue_length_series(table(*rows)).axes
    assert [line.get_label() for line in axes.lines] == ["stream 7", "stream 20"]
    assert np.asarray(axes.lines[0].get_ydata()).tolist() == [at % 3 for at in range(9)]
    assert axes.get_xlabel() == "Time since the first launch (ms)"
    longer = [row | {"rank": rank, "length": row["length"] * (rank + 1)} for row in rows for rank in (0, 1)]
    one, other = plots.queue_length_series(table(*longer)).axes
    assert one.get_ylim() == other.get_ylim(), "panels that people compare"


def test_a_timeline_has_lanes_for_streams_calls_and_depths() -> None:
    base = {"step": 3, "step_ns": 100 * MS, "stream": None, "thread": None, "depth": None, "family": None, "duration_ns": 10 * MS}
    figure = plots.step_timeline(table(
        base | {"kind": "kernel", "family": "gemm", "stream": 7, "name": "k", "start_ns": 20 * MS},
        base | {"kind": "memory", "stream": 8, "name": "HtoD", "start_ns": -5 * MS},
        base | {"kind": "api_call", "thread": -77404608, "name": "cudaPointerGetAttributes", "start_ns": 9 * MS},
        base | {"kind": "api_call", "thread": 11, "name": "cudaLaunchKernel", "start_ns": 5 * MS},
        base | {"kind": "operator", "thread": 11, "name": "aten::mm", "depth": 1, "start_ns": 5 * MS},
        base | {"kind": "operator", "thread": 11, "name": "aten::outer", "depth": 0, "start_ns": 0}), gpus={})
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "stream 7", "stream 8", "thread 11", "thread 0xfb62e640"]
    assert axes.get_ylim()[0] > 4, "five lanes"
    assert axes.get_xlim() == (0, 100) and "step 3" in titles(figure)
    assert legends(figure) == ["gemm", "memory", "API call", "operator"]


def test_rows_of_two_runs_keep_their_own_labels() -> None:
    rows = [WHERE | {"run": run, "rank": None, "process_id": f"{run}:{number}"} for run in ("a", "b") for number in (0, 1)]
    assert list(frame.labels(rows).values()) == ["process 0", "process 1"] * 2
    ranked = [row | {"rank": number % 2} for number, row in enumerate(rows)]
    assert list(frame.labels(ranked).values()) == ["rank 0", "rank 1"] * 2
    assert list(frame.labels(rows[:1]).values()) == ["rank unknown"]
    two = [WHERE | {"rank": None, "process_id": f"kineto-{profile}:0"} for profile in ("fa89dc55b09c", "07ff11a91b2c")]
    assert list(frame.labels(two).values()) == ["process fa89dc:0", "process 07ff11:0"]


@pytest.mark.parametrize(("longest", "unit"), [(5e9, "s"), (2e6, "ms"), (999, "ns"), (0, "ns")])
def test_units_of_time(longest: float, unit: str) -> None:
    assert frame.time_unit(longest)[1] == unit


def test_thinned_curves_keep_their_peaks() -> None:
    ys = np.zeros(100_000)
    ys[77_777] = 5
    xs, kept = frame.thinned(np.arange(100_000), ys, most=1000)
    assert len(xs) <= 1000 and kept.max() == 5 and xs[kept.argmax()] == 77_777


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_every_format_is_written(tmp_path: Path, ending: str) -> None:
    assert plots.save(plots.step_breakdown(table(step(1))), tmp_path / f"x.{ending}").stat().st_size > 3000


def changed(item: str | None, base_ms: int, other_ms: int, **more: Any) -> dict[str, Any]:
    return {"base_run": "before", "other_run": "after", "tool": "kineto", "rank": None, "kind": "compute",
            "item": item, "difference_ns": (other_ms - base_ms) * MS, "base_ns": base_ms * MS, "other_ns": other_ms * MS,
            "base_total_ns": 100 * MS, "other_total_ns": 70 * MS, "change_ns": -30 * MS, "base_ranks": 2, "other_ranks": 2,
            "excluded_ranks": None} | more


def spans(axes: Axes) -> list[tuple[float, float]]:
    boxes = [bar.get_bbox() for bar in axes.patches]  # type: ignore[attr-defined]
    return [(round(box.x0, 6), round(box.x1, 6)) for box in boxes]


def test_a_waterfall_leads_from_one_step_to_the_other() -> None:
    figure = plots.run_waterfall(pa.Table.from_pylist([
        changed("gemm", 60, 20), changed("data loader", 40, 45, kind="idle"), changed(None, 0, 5, kind="collective"),
        changed("memory", 1, 1)]), gpus={("before", "kineto"): "A100"})
    (axes,) = figure.axes
    assert spans(axes) == [(0, 100), (60, 100), (60, 65), (65, 70), (70, 70), (0, 70)]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "before", "gemm", "idle, host: data loader", "collective, unattributed", "1 more, together", "after"]
    assert "before to after" in titles(figure) and "mean of 2 and 2 processes" in titles(figure)


def test_small_changes_cut_the_axis_and_many_share_a_bar() -> None:
    totals = {"base_total_ns": 1000 * MS, "other_total_ns": 1020 * MS, "excluded_ranks": "base 3"}
    rows = [changed(f"k{k}", 10, 11, **totals) for k in range(20)]
    figure = plots.run_waterfall(pa.Table.from_pylist(rows))
    (axes,) = figure.axes
    assert len(axes.patches) == 17 and axes.get_yticklabels()[-2].get_text() == "6 more, together"
    assert axes.get_xlim()[0] == pytest.approx(0.988) and "the axis begins at 0.988" in axes.get_xlabel()
    assert "rank base 3" in figure.legends[0].get_title().get_text()


def test_shares_are_drawn_without_a_step_and_ranks_apart() -> None:
    share = {"change_ns": None, "difference_ns": None, "base_ranks": 1, "other_ranks": 1}
    rows = [changed("gemm", 9, 9, rank=rank, difference_pct=by, **share) for rank in (0, 1) for by in (-3.5, 2.0)]
    figure = plots.run_waterfall(pa.Table.from_pylist(rows))
    assert len(figure.axes) == 2 and "no steps were recorded" in titles(figure) and "rank 1" in titles(figure)
    assert spans(figure.axes[0]) == [(-3.5, 0), (0, 2)]
    assert figure.axes[0].get_xlim()[0] < -3.5 and legends(figure) == ["a larger share", "a smaller share"]


def test_a_plot_that_there_is_not_names_those_that_there_are() -> None:
    with pytest.raises(AttributeError, match=r"no plot straggler; there are step_breakdown, .*top_kernels"):
        getattr(plots, "straggler")  # noqa: B009


def test_in_a_column_of_a_paper_titles_and_legends_are_broken_into_lines() -> None:
    figure = plots.step_breakdown(table(step(1), step(2)), gpus={("base", "nsys"): "NVIDIA A100-SXM4-80GB of a long name"})
    frame.resize(figure, (3.5, 2.8))
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()
    assert drawn.x0 > -0.02 < drawn.y0 and drawn.x1 < 3.52 and drawn.y1 < 2.82
