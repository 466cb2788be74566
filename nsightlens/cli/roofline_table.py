"""The table of nsightlens roofline: which rows of the view, in which order and units."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from nsightlens.cli.messages import say
from nsightlens.errors import UsageError
from nsightlens.names.kernel_names import labels

if TYPE_CHECKING:
    import pyarrow as pa

ROOFS = ("ncu", "datasheet")
_SHARES = {"ncu": "roof_pct", "datasheet": "datasheet_roof_pct"}
_CORE = ("fp64", "fp32", "fp16")
_TYPES = {"rank": "int64", "launches": "int64", **dict.fromkeys((
    "run", "kernel", "grid", "block", "clocks", "level", "precision", "work", "time", "grade", "time_launches",
    "roof_clock", "shapes"), "string")}
_MOST = 20  # kernels from shapes, where none is asked for by name


def choose(table: pa.Table, level: str, precision: str) -> pa.Table:
    """Return the rows of this level and precision. Raises UsageError for a precision that no row has."""
    import pyarrow.compute as pc

    if level != "all":
        table = table.filter(pc.equal(table["level"], level))
    wanted = precision.lower()
    if wanted == "all":
        # A path that a kernel does not use is not worth a line.
        return table.filter(pc.or_(table["is_main"], pc.not_equal(table["achieved_flop_per_s"].fill_null(1), 0)))
    if wanted == "main":
        return table.filter(table["is_main"])
    names = table["precision"].fill_null("")
    # A row whose tensor work was not counted belongs to every tensor path: it says what to collect.
    is_path = pc.and_(pc.starts_with(names, "tensor"), pc.or_(pc.match_substring(names, wanted), pc.equal(names, "tensor")))
    chosen = table.filter(pc.equal(names, wanted) if wanted in _CORE else is_path)
    if chosen.num_rows == 0:
        known = sorted({name for name in names.to_pylist() if name})
        raise UsageError(f"no kernel has precision {precision}; there are {', '.join(known) or 'none'}",
                         subject="precision", value=precision, choices=known)
    return chosen


def by_time(table: pa.Table) -> pa.Table:
    """Return the rows, configurations with the longest launches first; in a true roofline those with the most time in all.

    Rows of a configuration stay together; those of unknown time come last.
    """
    rows = table.to_pylist()
    times: dict[object, float] = defaultdict(lambda: -1.0)
    for row in rows:
        launches = row["launches"] if "time_tool" in row else 1
        times[row["configuration_id"]] = max(times[row["configuration_id"]], (row["duration_ns"] or -1) * (launches or 1))
    first = {key: place for place, key in enumerate(dict.fromkeys(row["configuration_id"] for row in rows))}
    order = sorted(range(len(rows)), key=lambda i: (-times[rows[i]["configuration_id"]], first[rows[i]["configuration_id"]], i))
    return table.take(order)


def summary(table: pa.Table, roofs: str) -> pa.Table:
    """Return the key columns, in units that people read."""
    import pyarrow as pa

    points = table.to_pylist()
    names = labels({row["name"] for row in points})
    is_true = "time_tool" in table.column_names
    rows = []
    for row in points:
        shares = [row.get(name) for name in ("given_roof_pct", *(_SHARES[source] for source in sorted(ROOFS, key=roofs.__ne__)))]
        other, others_rate = ("ncu", "ncu_achieved_flop_per_s") if is_true else ("ncu_chart", "ncu_chart_flop_per_s")
        rows.append({
            "run": row["run"], "rank": row["rank"], "kernel": names[row["name"]],
            "grid": _shape(row, "grid"), "block": _shape(row, "block"), "clocks": row["clock_control"],
            "level": row["level"], "precision": row["precision"], "duration_us": _scaled(row["duration_ns"], 1e3),
            "gflop_per_s": _scaled(row["achieved_flop_per_s"], 1e9) if row["plottable"] else None,
            "flop_per_byte": row["arithmetic_intensity"] if row["plottable"] else None,
            "roof_pct": next((share for share in shares if share is not None), None),
            "gbyte_per_s": _scaled(row["achieved_bytes_per_s"], 1e9), "launches": row["launches"],
            **(_timing(row) if is_true else _range(row)),
            f"{other}_gflop_per_s": _scaled(row[others_rate], 1e9) if row["plottable"] else None,
            **(_spread(row) if is_true else {}),
        } | ({"roof_clock": _clock(row), "shapes": _shapes(row)} if is_true else {}))
    found = pa.Table.from_pylist(rows, schema=pa.schema([(name, _TYPES.get(name, "float64")) for name in rows[0]]))
    one_clock = ["clocks"] if len({row["clocks"] for row in rows}) < 2 else []
    no_shapes = ["shapes"] if is_true and not any(row["shapes"] for row in rows) else []
    spread = [] if is_true or any(row["min_gflop_per_s"] != row["max_gflop_per_s"] for row in rows) else list(_range({}))
    return found.drop_columns(one_clock + no_shapes + spread)


def _range(row: dict[str, Any]) -> dict[str, float | None]:
    """Return what the launches achieved at least and at most, where there are several."""
    several = row.get("plottable") and (row["launches"] or 0) > 1
    return {f"{end}_{name}": _scaled(row[f"{end}_achieved_{column}"], 1e9) if several else None for name, column in
            (("gflop_per_s", "flop_per_s"), ("gbyte_per_s", "bytes_per_s")) for end in ("min", "max")}


def _timing(row: dict[str, Any]) -> dict[str, Any]:
    """Return the sources of work and time, and how certain it is that they are of the same launches."""
    some = {"all ranks": ", all ranks", "another rank": ", another rank"}.get(row["time_ranks"], "")
    return {"work": row["work_source"], "time": row["time_tool"], "grade": row["time_grade"] and row["time_grade"] + some,
            "time_launches": row["time_launches"]}


def _clock(row: dict[str, Any]) -> str | None:
    """Return the clock of a row's roofs: '1.41 GHz, locked clock of ncu'."""
    return row["roof_clock_source"] and f"{row['roof_clock_hz'] / 1e9:.3g} GHz, {row['roof_clock_source']}"


def _shapes(row: dict[str, Any]) -> str | None:
    """Return the operator and its shapes, where the work comes from them."""
    return row["traffic_source"] if row["work_source"] == "shapes" else None


def longest(table: pa.Table) -> pa.Table:
    """Return the table with at most _MOST kernels from shapes: those with the most time, which come first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counted, shaped = (table.filter(pc.equal(table["work_source"], source)) for source in ("counters", "shapes"))
    if shaped.num_rows <= _MOST:
        return table
    say(f"{shaped.num_rows - _MOST} more kernels from shapes with less time: --kernel NAME shows them")
    return pa.concat_tables([counted, shaped.slice(0, _MOST)])


def _spread(row: dict[str, Any]) -> dict[str, float | None]:
    """Return the spread of the launches around their median, in us."""
    return {f"{name}_us": _scaled(row[f"{name}_duration_ns"], 1e3) for name in ("min", "p5", "p95", "max")}


def _shape(row: dict[str, Any], what: str) -> str:
    return "x".join("?" if row[f"{what}_{axis}"] is None else str(row[f"{what}_{axis}"]) for axis in "xyz")


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value / by
