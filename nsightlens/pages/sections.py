"""The sections of `nsightlens summary`: each queries views and returns their key figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import chain

from nsightlens.names.process_label import process_label
from nsightlens.pages import counter_sections, host_sections, verdict_page
from nsightlens.pages.query import TIMELINE, Page, Part, Row, best
from nsightlens.pages.section import (
    LISTED,
    NOT_RECORDED,
    Absent,
    Bars,
    Line,
    Section,
    known_sum,
    listed,
    more,
    outliers,
    some,
    spread,
    texts_absent,
    unmatched,
)
from nsightlens.pages.tables import Column
from nsightlens.terminal.command import Command
from nsightlens.views.figures import MISSING, counted, duration, number, share, size, spans
from nsightlens.views.run_command import with_run

_OPERATORS = ("kineto", "nsys")  # the one that knows most of them first
_CATEGORIES = {"kernel": "kernels", "memcpy": "copies", "memset": "sets", "communication": "communication",
               "runtime": "API calls", "data_loader": "data loader", "cpu_exec": "CPU operators", "other": "other"}
_COVERED = {"call": "launch call", "range": "range", "op": "operator", "module": "module", "phase": "phase", "step": "step"}
_FEW, _MANY = 8, 16
_HALF_PCT = 50
_LIMITS = (
    ("ncu", "What limits it: ", Command("show", ("headroom",))),
    (None, "To measure what limits it: ", Command("plan-ncu")),
)
"""Where to read what limits a kernel, by the tool that must have been run; the last one holds for any run."""


def captured(asked: Page) -> list[Section]:
    """Return what was recorded: a row per tool."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in asked.ask("profile_overview"):
        if row["tool"] is not None:
            found[row["tool"]].append(row)
    simulated = any(row["simulated"] for rows in found.values() for row in rows)
    note = asked.note("profile_overview", "simulated, in part or whole: not measured on a GPU" if simulated else "")
    columns = (
        Column("tool", list(found), 9, text=True),
        Column("version", [some(row["tool_version"] or row["format"] for row in rows) for rows in found.values()], 3, True, True,
               shortest=12),
        Column("profiles", [number(len(rows)) for rows in found.values()], 2),
        Column("ranks", [spans(rank for row in rows for rank in _split_list(row["ranks"])) for rows in found.values()], 8, True),
        Column("hosts", [some(host for row in rows for host in _split_list(row["hosts"])) for rows in found.values()], 1, True,
               True),
        Column("GPU", [some(_gpus(rows)) for rows in found.values()], 7, True, True),
        Column("span", [duration(max((row["gpu_span_ns"] for row in rows if row["gpu_span_ns"] is not None), default=None))
                        for rows in found.values()], 6),
        Column("kernels", [number(sum(row["kernels"] or 0 for row in rows)) for rows in found.values()], 5),
        Column("kernel time", [duration(known_sum(row["kernel_ns"] for row in rows)) for rows in found.values()], 2),
        Column("memory ops", [number(sum(row["memory_ops"] or 0 for row in rows)) for rows in found.values()], 2),
        *([] if any(row["kernels"] for rows in found.values() for row in rows) else
          [Column("ranges", [number(sum(row["ranges"] or 0 for row in rows)) for rows in found.values()], 6)]),
    )
    return [Section("Captured", note, columns, _counter_lines(found))]


def _counter_lines(tools: Collection[str]) -> tuple[Line, ...]:
    """Return the command that shows ncu's counters, over the times of the best timeline, where there are any."""
    over = tuple(("--time", tool) for tool in TIMELINE if tool in tools)[:1]
    commands = (
        "roofline",
    )
    return tuple(Line(("counters of ncu: ", Command(name, over))) for name in commands if "ncu" in tools)


def gpus(asked: Page) -> list[Section]:
    """Return how well each GPU was used."""
    tool, rows = best(asked.ask("gpu_summary"), TIMELINE)
    if not rows:
        return []
    covered = "first step's start to last step's end" if _stepped(asked, tool) else "over the whole capture"
    shown = outliers(rows, lambda row: row["busy_pct"], _FEW)
    blank = all(row["sm_efficiency_pct"] is None for row in shown)
    cores = "matrix cores" if all((row["gpu"] or "").startswith("AMD") for row in shown) else "tensor cores"
    columns = (
        Column("rank", _labels(shown), 9, text=True),
        Column("GPU", [row["gpu"] or NOT_RECORDED for row in shown], 8, text=True, flexible=True),
        Column("memory", [size(row["memory_bytes"]) for row in shown], 2),
        Column("cc", [row["compute_capability"] or MISSING for row in shown], 1, text=True),
        Column("kernels run", [share(row["utilization_pct"]) for row in shown], 7),
        Column("busy", [share(row["busy_pct"]) for row in shown], 6),
        Column("SM efficiency", [share(row["sm_efficiency_pct"]) for row in shown], 4),
        Column("occupancy", [share(row["occupancy_pct"]) for row in shown], 4),
        Column(cores, [share(row["tensor_core_pct"]) for row in shown], 5),
    )
    left_out = more(len(rows) - len(shown), "gpu_summary", f"busy {spread((row['busy_pct'] for row in rows), share)}")
    unknown = ["SM efficiency and occupancy: unknown (grids or the number of SMs were not recorded)"] if blank else []
    return [Section("GPUs", asked.note("gpu_summary", tool, covered), columns, (*left_out, *listed(unknown)))]


def execution(asked: Page) -> list[Section]:
    """Return where a step went, a bar per category, over all processes; nothing where the tree says it, for all steps."""
    if asked.ask("time_tree") and "step" not in asked.filters:
        return []
    tool, rows = best(asked.ask("execution_summary"), TIMELINE)
    if not rows:
        return []
    steps = {tuple(row[name] for name in ("profile_id", "process_id", "window_index")): row for row in rows}
    count, length = sum(row["steps"] for row in steps.values()), sum(row["steps_ns"] for row in steps.values())
    stepped, processes = _stepped(asked, tool), len({row["process_id"] for row in rows})
    mean = f"{duration(length / count)}, the whole capture{', mean per process' if processes > 1 else ''}"
    if stepped:
        over = f" of {processes} processes" if processes > 1 else ""
        of = f"{'mean of ' if count > 1 else ''}{counted(count, 'step')}{over}"
        mean = f"{of}: {duration(length / count)}{_outside_steps(asked, tool)}"
    totals: dict[str, int] = defaultdict(int)
    for row in rows:
        totals[row["category"]] += row["total_ns"] or 0
    spent = {name: totals[name] for name in _CATEGORIES if totals[name]}
    columns = (
        Column("", [_CATEGORIES[name] for name in spent], 9, text=True),
        Column("per step" if stepped else "time", [duration(ns / count) for ns in spent.values()], 9),
        Column("share", [share(100 * ns / length if length else None) for ns in spent.values()], 9),
        Bars(tuple((("█", ns / length if length else 0),) for ns in spent.values()), 9, least=10, most=60, beside=42),
    )
    absent = [text for name, text in _CATEGORIES.items() if not totals[name]]
    title = "Where a step went" if stepped else "Where the time went (no steps were recorded)"
    return [Section(title, asked.note("execution_summary", tool, mean), columns,
                    listed([f"none: {', '.join(absent)}"] if absent else []))]


def communication(asked: Page) -> list[Section]:
    """Return how much of the communication ran while kernels computed."""
    tool, rows = best((row for row in asked.ask("busy_time") if row["communication_ns"]), TIMELINE)
    if not rows:
        return []
    figures = {"communication": "communication_ns", "overlapped": "overlap_ns", "exposed": "exposed_communication_ns",
               "compute": "compute_ns", "idle": "idle_ns"}
    shown = outliers(rows, lambda row: row["exposed_communication_ns"], _FEW)
    columns = (Column("rank", _labels(shown), 9, text=True), *(
        Column(name, [duration(row[column]) for row in shown], 8) for name, column in figures.items()))
    exposed = spread((row["exposed_communication_ns"] for row in rows), duration)
    return [Section("Communication", asked.note("comm_compute_overlap", tool, "first to last GPU work"),
                    columns, more(len(rows) - len(shown), "comm_compute_overlap", f"exposed {exposed}"))]


def step_times(asked: Page) -> list[Section]:
    """Return the steps that the workload timed itself, without a profiler and under each."""
    rows = asked.ask("step_time_summary")
    if not rows:
        return []
    shown = rows[:_FEW]
    columns = (
        Column("profiler", [row["profiler"] or MISSING for row in shown], 9, text=True),
        Column("rank", [_rank(row) for row in shown], 9),
        Column("segment", [row["segment_name"] or MISSING for row in shown], 8, text=True),
        Column("steps", [number(row["steps"]) for row in shown], 7),
        Column("per step", [duration(row["step_ns"]) for row in shown], 9),
        Column("issued in (median)", [duration(row["median_ns"]) for row in shown], 3),
    )
    return [Section("Steps as the workload timed them", asked.note("step_time_summary", "recording under a profiler costs time"),
                    columns, more(len(rows) - len(shown), "step_time_summary"))]


def operators(asked: Page) -> list[Section | Absent]:
    """Return the operators that took the most GPU time themselves."""
    tool, rows = best(asked.ask("operator_summary"), _OPERATORS)
    if not rows:
        return [Absent("operators: a PyTorch-profiler trace has them, or nsys with emit_nvtx ranges")]
    figures = ("calls", "device_self_ns", "device_total_ns", "host_self_ns")
    summed: dict[str, Row] = {}
    for row in rows:
        total = summed.setdefault(row["name"], dict.fromkeys(figures))
        for name in figures:
            total[name] = row[name] if total[name] is None else total[name] + (row[name] or 0)
    on_gpu = any(total["device_self_ns"] is not None for total in summed.values())
    key = "device_self_ns" if on_gpu else "host_self_ns"
    everything = sum(total[key] or 0 for total in summed.values())
    spent = [item for item in summed.items() if item[1][key]]
    top = sorted(spent or summed.items(), key=lambda item: (-(item[1][key] or 0), item[0]))[:_FEW]
    unknown = "" if on_gpu else f"GPU time: {NOT_RECORDED}"
    columns = (
        Column("operator", [name for name, _ in top], 9, text=True, flexible=True),
        Column("calls", [number(total["calls"]) for _, total in top], 4),
        Column("GPU self", [duration(total["device_self_ns"]) for _, total in top], 8),
        Column("share", [share(100 * (total[key] or 0) / everything if everything else None) for _, total in top], 7),
        Column("GPU total", [duration(total["device_total_ns"]) for _, total in top], 3),
        Column("host self", [duration(total["host_self_ns"]) for _, total in top], 5),
    )
    return [Section("Top operators", asked.note("operator_summary", tool, "summed over processes", unknown), columns)]


def kernels(asked: Page) -> list[Section | Absent]:
    """Return the kernels that took the most time."""
    by_rank = "rank" in asked.filters
    view = "kernel_by_rank" if by_rank else "top_kernels"
    rows = asked.ask(view) if by_rank else asked.ask(view, how_many=_FEW)
    tool, rows = best(rows, (*TIMELINE, "ncu"))
    if not rows:
        return [Absent("kernels")]
    longest = sorted(rows, key=lambda row: (-(row["clipped_ns"] or 0), row["name"], row.get("rank") or 0))[:_FEW]
    names = [row["name"] for row in longest]
    is_clipped = any(row["clipped_ns"] != row["total_ns"] for row in rows)
    columns = (
        *([Column("rank", [_rank(row) for row in longest], 9)] if by_rank else []),
        Column("kernel", names, 9, True, True, shortest=34, kernels=names),
        Column("family", [row["family"] or MISSING for row in longest], 3, text=True),
        Column("launches", [number(row["instances"]) for row in longest], 4),
        Column("as recorded" if is_clipped else "total", [duration(row["total_ns"]) for row in longest], 8),
        *([Column("clipped", [duration(row["clipped_ns"]) for row in longest], 8)] if is_clipped else []),
        Column("share", [share(row["time_pct"]) for row in longest], 7),
        Column("median", [duration(row["median_ns"]) for row in longest], 5),
    )
    return [Section("Top kernels", asked.note(view, tool, "" if by_rank else "summed over launches and ranks"), columns,
                    _dominant(asked, tool, longest[0]))]


def _dominant(asked: Page, tool: str, first: Row) -> tuple[Line, ...]:
    """Return a line where one kernel that computes has most of the kernel time: what measures its limit, or has done so."""
    if tool not in TIMELINE or (first["time_pct"] or 0) <= _HALF_PCT or first["family"] == "collective":
        return ()
    tools = {row["tool"] for row in asked.ask("profile_overview")}
    how, command = next((text, command) for needed, text, command in _LIMITS if needed is None or needed in tools)
    of_one = with_run(command, asked.run, asked.store.values_of("run"))
    return (Line((f"One kernel has {share(first['time_pct'])} of the kernel time. {how}", of_one)),)


def memory(asked: Page) -> list[Section | Absent]:
    """Return the peak of each GPU's memory."""
    peaks = asked.ask("memory_peak")
    rows = [row for row in peaks if row["device_type"] != "cpu"]
    if not rows:
        if peaks:
            return [Absent(("memory of a GPU; the host: ", Command("show", ("memory_peak",))))]
        return [Absent("memory: a PyTorch-profiler trace with profile_memory=True has it")]
    known = [row for row in rows if row["peak_allocated_bytes"] is not None]
    if not known:
        return [Absent(("totals of memory, which need PyTorch 1.10 or later; what was allocated and freed: ",
                        Command("show", ("memory_curve",))))]
    shown = sorted(known, key=lambda row: -row["peak_allocated_bytes"])[:_FEW]
    columns = (
        Column("rank", _labels(shown), 9, text=True),
        Column("device", [_device(row) for row in shown], 3, text=True),
        Column("allocated", [size(row["peak_allocated_bytes"]) for row in shown], 8),
        Column("of the GPU", [share(row["peak_pct"]) for row in shown], 7),
        Column("reserved", [size(row["peak_reserved_bytes"]) for row in shown], 5),
        Column("in operator", [row["peak_op"] or MISSING for row in shown], 4, text=True, flexible=True),
    )
    return [Section("Memory peak", asked.note("memory_peak", best(known, _OPERATORS)[0]), columns,
                    more(len(known) - len(shown), "memory_peak"))]


def ranks(asked: Page) -> list[Section]:
    """Return the processes side by side: how each GPU's time was spent, and a bar of it."""
    tool, rows = best(asked.ask("busy_time"), TIMELINE)
    if len(rows) < 2:
        return []
    waited = asked.totals("distributed_overview", ("tool", "process_id"), "synchronizing_ns", "sum")
    waits = {row["process_id"]: row["synchronizing_ns"] for row in waited if row["tool"] == tool}
    shown = outliers(rows, lambda row: row["idle_ns"], _MANY)
    longest = max(row["span_ns"] for row in rows) or 1
    columns = (
        Column("rank", _labels(shown), 9, text=True),
        Column("span", [duration(row["span_ns"]) for row in shown], 6),
        Column("busy", [share(row["busy_pct"]) for row in shown], 3),
        Column("compute", [duration(row["compute_ns"]) for row in shown], 8),
        Column("exposed comm.", [duration(row["exposed_communication_ns"]) for row in shown], 7),
        Column("waiting", [duration(waits.get(row["process_id"])) for row in shown], 2),
        Column("idle", [duration(row["idle_ns"]) for row in shown], 7),
        Bars(tuple(_parts(row, longest) for row in shown), 4, least=18, most=60, beside=92),
    )
    note = asked.note("busy_time", tool, "█ compute ▓ exposed communication ▒ other GPU work · idle")
    left_out = more(len(rows) - len(shown), "busy_time", f"idle {spread((row['idle_ns'] for row in rows), duration)}")
    return [Section("Ranks side by side, first to last GPU work", note, columns, (*left_out, *_not_matched(asked, tool)))]


def _not_matched(asked: Page, tool: str) -> tuple[Line, ...]:
    calls = [row for row in asked.ask("collective_summary") if row["tool"] == tool]
    total_ns, part_ns = (sum(row[name] for row in calls) for name in ("latency_ns", "unmatched_ns"))
    kernels = sum(row["calls"] - row["matched_calls"] for row in calls)
    return listed([unmatched(kernels, part_ns, total_ns, "to separate waiting from transfer")] if calls else [])


def _parts(row: Row, longest: int) -> tuple[tuple[str, float], ...]:
    compute, exposed = row["compute_ns"], row["exposed_communication_ns"]
    parts = (("█", compute), ("▓", exposed), ("▒", row["busy_ns"] - compute - exposed), ("·", row["idle_ns"]))
    return tuple((character, ns / longest) for character, ns in parts)


def coverage(asked: Page) -> list[Section]:
    """Return the share of GPU time that has a launch call, an operator, a step ..."""
    sums: dict[str, dict[str, list[int]]] = {}
    for row in asked.ask("attribution_coverage"):
        part = sums.setdefault(row["tool"], {}).setdefault(row["attributed_to"], [0, 0])
        part[0] += row["gpu_ns"] or 0
        part[1] += row["all_gpu_ns"] or 0
    if not sums:
        return []
    columns = (Column("tool", list(sums), 9, text=True), *(
        Column(name, [share(100 * parts[what][0] / parts[what][1]) if what in parts and parts[what][1] else MISSING
                      for parts in sums.values()], 8 - place) for place, (what, name) in enumerate(_COVERED.items())))
    return [Section("GPU time traced back to", asked.note("attribution_coverage"), columns)]


def diagnostics(asked: Page) -> list[Section]:
    """Return what was wrong, missing or guessed."""
    rows = asked.ask("diagnostic_summary")
    serious = [row for row in rows if row["severity"] != "info"]
    notes = len(rows) - len(serious)
    if not rows:
        return []
    told = (f"{counted(notes, 'note')}{' more' if serious else ''}: ", Command("show", ("diagnostic_summary",))) if notes else ()
    lines = (Line(f"{row['severity']} {row['code']} ({row['tool'] or 'no tool'}, {row['count']}×): {row['message']}",
                  "!" if row["severity"] == "error" else LISTED) for row in serious[:_FEW])
    return [Section("Diagnostics", told if serious else ("no errors, no warnings; ", *told), (),
                    (*lines, *more(len(serious) - _FEW, "diagnostic_summary")))]


FIRST: tuple[Part, ...] = (verdict_page.verdict, verdict_page.tree, captured, gpus, execution)
LAST: tuple[Part, ...] = (coverage, diagnostics)
SECTIONS: tuple[tuple[Part, tuple[str, ...]], ...] = (
    (ranks, ("late rank",)),
    (communication, ("communication",)),
    (step_times, ("pause", "first use", "start-up")),
    (operators, ("data loader", "launching")),
    (kernels, ("computing", "FP32", "low fill")),
    (counter_sections.speed_of_light, ()),
    (host_sections.copies, ("copies",)),
    (host_sections.api_calls, ("API calls", "waiting", "launching")),
    (host_sections.mpi, ("MPI",)),
    (host_sections.nvtx, ("ranges",)),
    (memory, ()),
)
"""Sections in the middle of the page, and the causes of findings that put a section before the others."""


def ordered(asked: Page) -> list[Part]:
    """Return the sections of a run: those that its findings are about come first, in the order of the findings."""
    causes = list(dict.fromkeys(row["cause"] for row in verdict_page.told(asked) if row["kind"] == "finding"))
    place = {cause: number for number, cause in enumerate(causes)}
    of_causes = sorted(SECTIONS, key=lambda section: min((place.get(cause, len(causes)) for cause in section[1]),
                                                         default=len(causes)))
    return list(chain(FIRST, (section for section, _ in of_causes), LAST))


def with_absent(composed: Sequence[Sequence[Section | Absent]]) -> list[Section]:
    """Return the sections that the parts of a page have, in their order, and before the last of them what is not recorded."""
    there = [[section for section in sections if isinstance(section, Section)] for sections in composed]
    absent = texts_absent(composed)
    unrecorded = [Section("Not recorded", lines=listed(absent))] if absent else []
    return [*chain(*there[:-len(LAST)]), *unrecorded, *chain(*there[-len(LAST):])]


def _gpus(rows: Sequence[Row]) -> list[str]:
    """Return the names of the GPUs that worked; `unknown` beside them where some profile names none of its own."""
    named = [gpu for row in rows for gpu in _split_list(row["gpus"])]
    return [*named, *("unknown" for row in rows if named and row["gpus"] is None and (row["kernels"] or row["memory_ops"]))]


def _stepped(asked: Page, tool: str) -> bool:
    """Return whether the tool recorded steps: else one row stands for the whole capture of a process."""
    return any(row["step_id"] for row in asked.totals("step_breakdown", ("tool",), "step_id", "count", only_step=None)
               if row["tool"] == tool)


def _outside_steps(asked: Page, tool: str) -> str:
    """Return how much of the GPU time the steps hold, where some lies outside of them."""
    held = [row for row in asked.ask("attribution_coverage") if row["tool"] == tool and row["attributed_to"] == "step"]
    inside, everything = (sum(row[name] or 0 for row in held) for name in ("gpu_ns", "all_gpu_ns"))
    return f", {share(100 * inside / everything)} of the GPU time" if 0 < everything != inside else ""


def _labels(rows: Sequence[Row]) -> list[str]:
    """Return a name per row: its rank, else its process; the window where there are several."""
    several = len({row["window_index"] for row in rows}) > 1
    known = {row["process_id"] for row in rows if row["process_id"]}
    names = [str(row["rank"]) if row["rank"] is not None
             else MISSING if row["process_id"] and len(known) == 1
             else f"process {process_label(row['process_id'], known)}" if row["process_id"]
             else f"GPU {_tail(row.get('device_id'))}" for row in rows]
    if not several:
        return names
    return [f"window {row['window_index']}" if len(set(names)) == 1 else f"{name}, window {row['window_index']}"
            for name, row in zip(names, rows, strict=True)]


def _device(row: Row) -> str:
    kind = f"type {row['device_type']}," if row["device_type"].isdigit() else row["device_type"]
    return kind if row["device"] is None else f"{kind} {row['device']}"


def _rank(row: Row) -> str:
    return MISSING if row["rank"] is None else str(row["rank"])


def _tail(value: object) -> str:
    return MISSING if value is None else str(value).replace("/", ":").rsplit(":", 1)[-1]


def _split_list(text: str | None) -> list[str]:
    return text.split(", ") if text else []
