"""What nsightlens roofline says beside its table: what is not plotted, whose roofs, at which clock, and why nothing is there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightlens.cli.kernel_patterns import unlike
from nsightlens.cli.messages import say
from nsightlens.cli.roofline_table import ROOFS
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.names.kernel_names import labels

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store

_NO_SHAPES = "; nor is their work known from operator shapes (record_shapes=True)"
_NAMED = 3
_WHOSE = {"given": "as given", "ncu": "of ncu", "datasheet": "of the datasheet"}


def report_problems(table: pa.Table) -> None:
    """Print, once per reason, which kernels could not be plotted, and which points may mislead."""
    named = labels({row["name"] for row in table.to_pylist()})
    unmatched = {row["not_plottable_reason"] for row in table.to_pylist() if row.get("time_tool") and row["time_grade"] is None}
    for column, verb in (("not_plottable_reason", "not plotted"), ("warning", "warning")):
        kernels: dict[str, dict[str, None]] = defaultdict(dict)
        for row in table.to_pylist():
            if row[column] is not None:
                kernels[row[column]][named[row["name"]]] = None
        for reason, names in kernels.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            say(f"{verb}: {', '.join(list(names)[:_NAMED])}{more}: {reason}")
            if reason in unmatched:
                say("if the captures are of different programs, ingest each with a --run NAME of its own")


def report_roofs(table: pa.Table, roofs: str) -> None:
    """Print the roofs that the shares are of, with five digits."""
    found: dict[str, dict[tuple[str, str], set[float]]] = defaultdict(lambda: defaultdict(set))
    for row in table.to_pylist():
        for what, kind, unit in ((row["precision"], "flop", "FLOP/s"), (row["level"], "bytes", "B/s")):
            values = {"given": row.get(f"given_peak_{kind}_per_s"), "ncu": row[f"peak_{kind}_per_s"],
                      "datasheet": row[f"datasheet_peak_{kind}_per_s"]}
            source = next((name for name in ("given", *sorted(ROOFS, key=roofs.__ne__)) if values[name]), None)
            if source is not None and row["achieved_bytes_per_s"] is not None:
                found[source][what, unit].add(values[source])
    for source, by_what in found.items():
        listed = [f"{what} {_span(values)}{unit}" for (what, unit), values in by_what.items()]
        say(f"roofs {_WHOSE[source]}: {', '.join(listed)}")


def _span(values: set[float]) -> str:
    scale, prefix = (1e12, "T") if max(values) >= 1e12 else (1e9, "G")
    return " to ".join(dict.fromkeys(f"{value / scale:,.5g}" for value in (min(values), max(values)))) + f" {prefix}"


def report_missing_roofs(table: pa.Table, gpu: str | None) -> None:
    """Print for which precisions and levels no roof is known, and how to get one."""
    missing: dict[str, dict[str, None]] = defaultdict(dict)
    for row in table.to_pylist():
        if row["plottable"]:
            hint = "the report does not name its GPU: use --gpu NAME"
            if row["gpu"] or gpu:
                sheet = row["datasheet_gpu"]
                hint = f"the datasheet of {sheet} has none" if sheet else f"no datasheet for {row['gpu'] or gpu}"
            for what, roof in ((row["precision"], "peak_flop_per_s"), (row["level"], "peak_bytes_per_s")):
                if all(row.get(column) is None for column in (roof, f"datasheet_{roof}", f"given_{roof}")):
                    missing[hint][what] = None
    for hint, names in missing.items():
        say(f"no roof for {', '.join(names)}: {hint}")


def report_clock(table: pa.Table) -> None:
    """Print the clock that the roofs hold for."""
    if "roof_clock_source" in table.column_names:
        clocks: dict[str, set[str]] = defaultdict(set)
        for row in table.to_pylist():
            own = row.get("given_peak_flop_per_s") and row.get("given_peak_bytes_per_s")
            if row["plottable"] and row["roof_clock_source"] and not own:
                clocks[row["roof_clock_source"]].add(f"{row['roof_clock_hz'] / 1e9:.3g}")
        sampled = {row["roof_clock_source"] for row in table.to_pylist() if row.get("sampled_launches")}
        for name, hz in clocks.items():
            span = " to ".join(dict.fromkeys((min(hz, key=float), max(hz, key=float))))
            unknown = "" if name in sampled else "; the clock during the launches is unknown"
            say(f"roofs at the {name}, {span} GHz{unknown}")


def timed_elsewhere(store: Store, table: pa.Table) -> str | None:
    """Return a hint that another tool timed the same configurations undisturbed; None where none did."""
    key = ("run", "kernel_key", *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"))
    mine = {tuple(row[name] for name in key) for row in table.to_pylist()}
    timed = store.sql(f"SELECT DISTINCT tool, {', '.join(key)} FROM kernels WHERE tool <> 'ncu' AND list_contains(?, kernel_key)",
                      [sorted({str(one[1]) for one in mine})]).to_pylist()
    tools = Counter(row["tool"] for row in timed if tuple(row[name] for name in key) in mine)
    tool = max(tools, default=None)  # 'nsys' before 'kineto'
    return tool and (f"{tool} timed {tools[tool]} of these {len(mine)} configurations undisturbed: "
                     f"for the true roofline add --time {tool}")


def no_match(store: Store, kernels: Sequence[str], wanted: dict[str, list[object]], time: str) -> NsightlensError:
    """Return why there are no rows: no kernel of such a name (a UsageError), or no ncu capture at all."""
    counted = store.sql("SELECT DISTINCT name, run, rank, family FROM ncu_by_config").to_pylist()
    unknown = "" if time == "ncu" else _NO_SHAPES
    if not counted:
        timed = store.sql("SELECT DISTINCT tool FROM timeline_kernels ORDER BY tool DESC")["tool"].to_pylist()
        shapes = f"; from operator shapes alone: --time {timed[0]}" if timed and time == "ncu" else ""
        return NsightlensError("the store has no kernel that ncu profiled: ingest an ncu report (ncu --set roofline --export "
                               f"FILE){shapes}{unknown}")
    here = [row for row in counted if all(row[column] in values for column, values in wanted.items())]
    if not here:
        selected = ", ".join(f"{column} {', '.join(map(str, values))}" for column, values in wanted.items())
        runs = ", ".join(sorted({f"{row['run']} (rank {'unknown' if row['rank'] is None else row['rank']})" for row in counted}))
        return NsightlensError(f"ncu profiled nothing of {selected}; it profiled kernels of {runs}{unknown}")
    if not kernels:
        return NsightlensError(f"ncu profiled kernels, but none of their counters can be read{unknown}")
    return UsageError("; ".join(unlike(store, kernels)) + unknown, subject="kernel", value=kernels[0],
                      choices=sorted({row["name"] for row in counted}))


def check_gpu(store: Store, table: pa.Table, gpu: str | None) -> None:
    """Print where --gpu is not used, and why. Raises UsageError where it is used for no kernel."""
    if gpu is None:
        return
    known = store.sql("SELECT s.datasheet AS mine, g.name FROM _datasheet(product := ?) AS s, gpu_peaks AS g ORDER BY g.name",
                      [gpu]).to_pylist()
    if known[0]["mine"] is None:
        raise UsageError(f"no datasheet for {gpu!r}; there are: {', '.join(row['name'] for row in known)}", subject="gpu",
                         value=gpu, choices=[row["name"] for row in known])
    rows = table.to_pylist()
    reasons = dict.fromkeys(row["datasheet_source"] for row in rows if " not used: it has " in (row["datasheet_source"] or ""))
    named = dict.fromkeys(row["gpu"] for row in rows if row["gpu"] and "; forced" not in (row["datasheet_source"] or ""))
    texts = [*reasons, *(f"{gpu} not used: the report's GPU is named, {name}" for name in named)]
    hint = "; --force-gpu uses it anyway"
    if texts and all(row["datasheet_gpu"] is None for row in rows):
        raise UsageError(f"--gpu {'; '.join(texts)}{hint}")
    for text in texts:
        say(f"--gpu {text}{hint}")
