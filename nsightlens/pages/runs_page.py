"""The sections of `nsightlens compare runs`: each queries views and returns their key figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightlens.analyses.run_waterfall import called
from nsightlens.names.kernel_names import is_launch
from nsightlens.pages.asked import Row
from nsightlens.pages.section import NAME, PARAGRAPH, Bars, Line, Section, listed
from nsightlens.pages.tables import Column
from nsightlens.terminal.command import Command
from nsightlens.views import run_sentences
from nsightlens.views.figures import MISSING, counted, counted_both, duration, share
from nsightlens.views.run_sentences import ONE_MORE, alone, interval, signed

if TYPE_CHECKING:
    from nsightlens.store.comparison import Comparison
    from nsightlens.terminal.text import Text

_CHANGED = ("slower", "faster", "longer", "shorter", "new", "vanished")
_IN_ONE = {"new": "other", "vanished": "base"}
"""The side that alone has an item."""
_TWO = "these two"
"""Above what is said of the only two recordings: whether their runs differ is undecided."""
_MOST = 12
_HALF, _SHORTEST_HALF = 8, 3


def sections(
    compared: Comparison, recorded: list[Row], families: list[Row], by: str | None, threshold_pct: float,
) -> list[Section]:
    """Return the page of two runs. recorded: rows of the view recordings; families: those of run_difference by family, for a page
    that is asked for nothing else; by: as asked for."""
    base, other = compared.base, compared.other
    rows = {name: table.to_pylist() for name, table in compared.items()}
    steps, ranks = rows["step"], dict.fromkeys(row["rank"] for row in rows["waterfall"])
    tool = rows["differences"][0]["tool"] if rows["differences"] else ""
    doubts = recordings(recorded, (base, other), tool) if tool else ()
    return [
        *([Section(lines=listed(["", *compared.first], PARAGRAPH))] if compared.first else []),
        comparability(rows["comparability"], base, other, doubts),
        *(step_time(row, threshold_pct) for row in steps),
        *(waterfall([row for row in rows["waterfall"] if row["rank"] == rank], by if by not in (None, "step") else "family")
          for rank in ranks),
        *_changes(compared, rows["differences"], families, by, threshold_pct),
    ]


def _changes(
    compared: Comparison, items: list[Row], families: list[Row], by: str | None, threshold_pct: float,
) -> list[Section]:
    base, other = compared.base, compared.other
    if compared.unrelated:
        return [Section("What changed", "everything, so it is not listed; the whole lists:",
                        lines=listed((_all(kind, base, other),) for kind in ([by] if by else ["kernel", "family"])))]
    if by == "step":
        return []
    return [*changes(items, by or "kernel", base, other, threshold_pct), *changes(families, "family", base, other, threshold_pct)]


def _all(item_kind: str, base: str, other: str) -> Command:
    """Return the command that shows all differences."""
    return Command("show", ("run_difference", f"by={item_kind}", f"base={base}", f"other={other}"))


def comparability(rows: list[Row], base: str, other: str, doubts: Sequence[Line] = ()) -> Section:
    """Return how the two runs differ in how they were made. doubts: what is doubtful about their recordings."""
    differ = [row for row in rows if row["same"] is False]
    same = sum(row["same"] is True for row in rows)
    note = f"{same} {'property is' if same == 1 else 'properties are'} the same"
    unknown = [] if {"command", "driver_version"} & {row["property"] for row in rows} else [
        "The driver, library versions and batch size are not known: captures rarely record them, and there is no sidecar."]
    if not differ:
        return Section("Comparable?", note, lines=(*listed(["No known property differs.", *unknown]), *doubts))
    columns = (
        Column("differs", [row["property"] for row in differ], 9, text=True),
        Column("tool", [row["tool"] for row in differ], 7, text=True),
        Column(base, [row["base_value"] or MISSING for row in differ], 8, text=True, flexible=True),
        Column(other, [row["other_value"] or MISSING for row in differ], 8, text=True, flexible=True),
    )
    return Section("Comparable?", note, columns, (*listed(unknown), *doubts))


def recordings(rows: list[Row], runs: tuple[str, str], tool: str) -> tuple[Line, ...]:
    """Return what is doubtful about the recordings that are compared."""
    counts = {run: {row["recording"] for row in rows if (row["run"], row["tool"]) == (run, tool)} for run in runs}
    said = [f"{run}: {len(counts[run])} recordings, some by processes with the same pid ({row['seen_pid']}). If that "
            "is one process, they are parts of one execution, and vary less than executions do."
            for run in runs for row in rows if (row["run"], row["tool"]) == (run, tool) and row["seen_pid"] is not None]
    return listed(dict.fromkeys(said))


def step_time(row: Row, threshold_pct: float) -> Section:
    """Return the change of the step time: what the recordings say of the runs, and apart from it how two recordings differ."""
    return Section("Step time", f"{row['tool']}, {_counted(row)}", lines=listed(run_sentences.sentences(row, threshold_pct)))


def _counted(row: Row) -> str:
    """Return how many recordings and steps (or blocks of launches) of both runs are compared."""
    kind = "step" if row["unit"] == "per step" else "block"
    return (f"{counted_both(row['base_recordings'], row['other_recordings'], 'recording')}, "
            f"{counted_both(row['base_replicates'], row['other_replicates'], kind)}{'' if kind == 'step' else ' of launches'}")


def waterfall(rows: list[Row], item_kind: str) -> Section:
    """Return what each item adds to the change of the step time, the largest first, and the books; without steps: of shares."""
    first = rows[0]
    stepped = first["change_ns"] is not None
    who = "" if first["rank"] is None else f" of rank {first['rank']}"
    counts = counted_both(first["base_steps"], first["other_steps"], "step" if stepped else "captured slice")
    title = f"{'Where the step time went' if stepped else 'Shares of the captured time'}{who}, by {item_kind}"
    note = (f"{first['tool']}, exclusive time, mean of {counts} of "
            f"{counted_both(first['base_ranks'], first['other_ranks'], 'process')}")
    column = "difference_ns" if stepped else "difference_pct"
    shown = [(called(row), row["base_ns"], row["other_ns"], row["base_pct"], row["other_pct"], row[column], _named(row))
             for row in rows[:_MOST]]
    if rest := rows[_MOST:]:
        sums = (sum(row[name] for row in rest) for name in ("base_ns", "other_ns", "base_pct", "other_pct", column))
        shown.append((f"{len(rest)} more, together", *sums, ""))
    totals = first["base_total_ns"], first["other_total_ns"]
    shown.append(("sum: the step" if stepped else "sum", *totals, 100, 100, first["change_ns"] or 0, ""))
    names, base, other, base_pct, other_pct, by, verdicts = (list(cells) for cells in zip(*shown, strict=True))
    columns = (
        Column("item", names, 9, text=True, flexible=True, shortest=NAME,
               kernels=[name if is_launch(name) else None for name in names]),
        Column("base", list(map(duration, base)) if stepped else [f"{pct:.2f} %" for pct in base_pct], 7),
        Column("other", list(map(duration, other)) if stepped else [f"{pct:.2f} %" for pct in other_pct], 7),
        Column("difference", list(map(signed, by)) if stepped else [f"{points:+.2f}" for points in by], 8),
        _signed_bars(by[:-1]),
        Column(_TWO if alone(first) and any(verdicts) else "", verdicts, 8, text=True),
    )
    return Section(title, note, columns, listed(_books(rows, stepped)))


def _books(rows: list[Row], stepped: bool) -> list[str]:
    """Return the waterfall's sum, its share of idle time, and what it leaves out."""
    first = rows[0]
    said = [f"Books: {counted(len(rows), 'item')} sum to {sum(row['difference_ns'] for row in rows):+,} ns, the step's change "
            f"from {first['base_total_ns']:,} to {first['other_total_ns']:,} ns." if stepped else
            "No steps were recorded in both runs: these are shares of the captured time, in points, not step times."]
    idle = [row for row in rows if row["kind"] == "idle"]
    base, other = (sum(row[side] for row in idle) for side in ("base_ns", "other_ns"))
    shares = (100 * base / (first["base_total_ns"] or 1), 100 * other / (first["other_total_ns"] or 1))
    said.append(f"GPU idle in all: from {share(shares[0])} to {share(shares[1])}" + (
        f", from {duration(base)} to {duration(other)} ({signed(other - base)})." if stepped else "."))
    if first["tool"] == "kineto":
        said.append("Kineto slows the host: idle time includes profiling overhead.")
    if stepped and alone(first):
        said.append("One recording of each run: longer and shorter describe these two only.")
    if first["excluded_ranks"]:
        said.append(f"Ranks in only one run are left out: {first['excluded_ranks']}.")
    return said


def _signed_bars(figures: list[float]) -> Bars:
    """Return a bar for each figure, to the left (below 0) or right of a line, and none for their sum."""
    longest = max(map(abs, figures), default=0) or 1
    return Bars((*(((("█", figure / longest),)) for figure in figures), ()), 1, _SHORTEST_HALF, _HALF, 0, is_signed=True)


def changes(rows: list[Row], item_kind: str, base_run: str, other_run: str, threshold_pct: float) -> list[Section]:
    """Return the items that changed, the largest difference first, and how many could not be judged."""
    if not rows:
        return []
    of_two = alone(rows[0])
    changed = [row for row in rows if _named(row)]
    said: list[Text] = []
    if len(changed) > _MOST:
        said.append((f"{len(changed) - _MOST} more: ", _all(item_kind, base_run, other_run)))
    counts = Counter(row["in_recordings"] if of_two else row["verdict"] for row in rows if not _named(row))
    for verdict, text in (("no change", f"did not change by {threshold_pct:g} %"), ("undecided", "undecided"),
                          ("alike", f"without a clear difference beyond {threshold_pct:g} %"),
                          ("no interval", "cannot be judged: fewer than five steps or blocks in a recording")):
        if counts[verdict]:
            said.append(f"{counts[verdict]} {text}.")
    if of_two:
        undecided = "Whether the runs differ is undecided: one recording of each does not show how they vary."
        said.append(undecided if rows[0]["unit"] == "per step" else (f"{undecided} ", *ONE_MORE))
    return [Section(f"{'How these two recordings differ' if of_two else 'What changed'}, by {item_kind}",
                    f"{rows[0]['tool']}, mean {rows[0]['unit']}; {_counted(rows[0])}",
                    _changed(changed[:_MOST], item_kind, "recordings_" if of_two else "") if changed else (), listed(said))]


def _changed(rows: list[Row], item_kind: str, of: str) -> tuple[Column, ...]:
    """Return a table of items; of: whose interval is shown."""
    return (
        Column(item_kind, [row["item"] or f"(no {item_kind} known)" for row in rows], 9, text=True, flexible=True,
               shortest=NAME, kernels=[row["item"] if item_kind in ("kernel", "key") else None for row in rows]),
        Column("base", [duration(row["base_ns"]) for row in rows], 6),
        Column("other", [duration(row["other_ns"]) for row in rows], 6),
        Column("difference", [signed(row["difference_ns"]) for row in rows], 8),
        Column("95 % interval", [interval(row, of) for row in rows], 4),
        Column("change", [MISSING if row["change_pct"] is None else f"{row['change_pct']:+.1f} %" for row in rows], 7),
        Column(_TWO if alone(rows[0]) else "", [_named(row) for row in rows], 9, text=True),
    )


def _named(row: Row) -> str:
    """Return what a page calls a change: of the runs, else of their recordings; nothing where there is none to name."""
    if row["verdict"] not in _CHANGED and row["in_recordings"] in _IN_ONE:
        return f"{'' if alone(row) else 'undecided: '}only in {_IN_ONE[row['in_recordings']]}"
    return next((str(row[name]) for name in ("verdict", "in_recordings") if row[name] in _CHANGED), "")
