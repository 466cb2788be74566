"""The sections of `nsightlens compare ranks`: each queries views and returns their key figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from nsightlens.analyses.communicator_summary import SLOW, WAITING
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.pages.query import Page, Row, best
from nsightlens.pages.section import NAME, Section, listed, more, outliers, spread, unmatched
from nsightlens.pages.tables import Column
from nsightlens.pages.verdict_page import told, verdict
from nsightlens.terminal.command import Command
from nsightlens.views.figures import counted, duration, number, share, size, spans
from nsightlens.views.node_names import NODE_NAMES

if TYPE_CHECKING:
    import pyarrow as pa

TIMELINE = ("nsys", "kineto")
RECORDS = ("nccl_inspector", "flight_recorder")
TOOLS = (*TIMELINE, *RECORDS)
_REMEDY = (Command("scan", ("RUN_DIR",)), " shows the ranks of a run's files, and ", Command("ingest", (("--rank-pattern",),)),
           " reads them from unusual file names")
_MANY, _TOP, _FEW = 16, 10, 8
_MOSTLY_PCT = 50
"""Share of communication from which an item is communication."""
_BRANCHES = ("computing", "communication", "copies", "idle", "not recorded")
_LATE_PCT = 2
"""Share of the window from which on less time in MPI's collectives says that a rank is late (diagnosis/ranks.py)."""


def _by_execution(rows: list[Row]) -> dict[tuple[str, str | None], list[Row]]:
    found: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["tool"], row.get("execution_id")].append(row)
    return found


def to_trace(page: Page) -> list[Section]:
    """Return, per tool and execution, which ranks NCCL's and PyTorch's own records say are worth a trace, and why."""
    sections = []
    for (tool, _), rows in _by_execution(page.ask("ranks_to_trace")).items():
        if len(rows) < 2:
            continue
        worth = [row for row in rows if row["reason"] is not None]
        sections.append(Section(
            "Worth a trace", f"{tool}, records of {number(len(rows))} ranks", _worth(worth[:_TOP]) if worth else (),
            (*more(len(worth[_TOP:]), "ranks_to_trace"), *listed(_why(rows, worth)))))
    return sections


def _worth(shown: list[Row]) -> tuple[Column, ...]:
    return (
        Column("rank", [_who(row) for row in shown], 9, text=True, flexible=True),
        Column("why", [row["reason"] for row in shown], 8, text=True),
        Column("last", [number(row["times_last"]) for row in shown], 7),
        Column("delay", [duration(row["caused_delay_ns"]) for row in shown], 6),
        Column("waited itself", [duration(row["wait_ns"]) for row in shown], 5),
        Column("not issued", [number(row["unissued"]) for row in shown], 4),
        Column("process group", [row["communicator_name"] or row["communicator"] or "" for row in shown], 2, text=True,
               flexible=True),
        Column("traced", ["" if row["traced"] is None else "yes" if row["traced"] else "no" for row in shown], 3, text=True),
    )


def _who(row: Row) -> str:
    """Return the rank of a process, else its host and process id, else its id."""
    if row["rank"] is not None:
        return str(row["rank"])
    return ":".join(str(part) for part in (row["host"], row["pid"]) if part is not None) or str(row["process_id"])


def _why(rows: list[Row], worth: list[Row]) -> list[str]:
    """Return the sentences on which ranks to trace, and what is not known."""
    untraced = [_who(row) for row in worth[:_TOP] if not row["traced"]]
    said = [f"Trace rank {', '.join(untraced)}: the other ranks wait for missing ranks and stragglers, and the reference shows "
            "how they wait."] if untraced else []
    unknown = sum(row["verdict"] == "cannot tell" for row in rows)
    if unknown:
        said.append(f"{counted(unknown, 'rank')}: cannot tell, as none of their collectives has a known time on another rank.")
    if not worth and unknown < len(rows):
        said.append("No rank kept the others waiting for long: any rank is like the others.")
    return said


def bounds(page: Page) -> list[Section]:
    """Return what bounds the run, and where the time of each rank went: their trees side by side."""
    trees: dict[tuple[Any, ...], dict[str, Row]] = defaultdict(dict)
    causes: dict[tuple[Any, ...], str] = {}
    tools = [row["tool"] for row in told(page)][:1]
    for row in page.ask("time_tree"):
        if row["tool"] not in tools or row["rank"] is None:
            continue
        key = tuple(row[name] for name in ("rank", "profile_id", "window_index", "device_id"))
        if not row["parent_index"]:
            trees[key].setdefault(row["node"], row)  # of processes that share a GPU the first one's
        elif row["depth"] == 2 and row["parent_index"] == trees[key].get("idle", row)["row_index"]:
            causes.setdefault(key, row["node"])
    if not trees:
        return []
    shown = outliers(list(trees), lambda key: trees[key]["idle"]["share_pct"], _MANY)
    named = [branch for branch in _BRANCHES if any(tree[branch]["total_ns"] for tree in trees.values())]
    columns = (
        Column("rank", [str(key[0]) for key in shown], 9),
        Column("window", [duration(trees[key]["window"]["total_ns"]) for key in shown], 7),
        *(Column(NODE_NAMES.get(branch, branch), [share(trees[key][branch]["share_pct"]) for key in shown], 8)
          for branch in named),
        Column("idle, mostly", [NODE_NAMES.get(causes.get(key, ""), causes.get(key, "")) for key in shown], 6, text=True),
        Column("start-up", [duration(trees[key]["start-up"]["total_ns"]) for key in shown], 4),
    )
    return [*verdict(page)[:1], Section("Where the time of each rank went", page.note("time_tree", *tools), columns,
                                        more(len(trees) - len(shown), "time_tree"))]


def mpi(page: Page) -> list[Section]:
    """Return how long ranks were in each function of MPI, those first in which they differ most."""
    by = ("rank", "name")
    times: dict[str, dict[int, int]] = defaultdict(dict)
    for row in page.totals("mpi_call_trace", by, "duration_ns", "sum"):
        if row["rank"] is not None and row["duration_ns"] is not None:
            times[row["name"]][row["rank"]] = row["duration_ns"]
    calls: dict[str, int] = defaultdict(int)
    for row in page.totals("mpi_call_trace", by, "duration_ns", "count"):
        calls[row["name"]] += row["duration_ns"]
    compared = sorted((name for name, ranks in times.items() if len(ranks) > 1),
                      key=lambda name: min(times[name].values()) - max(times[name].values()))
    shown = compared[:_FEW]
    if not shown:
        return []
    most, least = ([pick(times[name], key=times[name].__getitem__) for name in shown] for pick in (max, min))
    columns = (
        Column("function", shown, 9, text=True, flexible=True),
        Column("calls", [number(calls[name]) for name in shown], 4),
        Column("longest", [duration(times[name][rank]) for name, rank in zip(shown, most, strict=True)], 8),
        Column("on rank", [str(rank) for rank in most], 7),
        Column("shortest", [duration(times[name][rank]) for name, rank in zip(shown, least, strict=True)], 8),
        Column("by rank", [str(rank) for rank in least], 7),
    )
    said = "Of a collective the rank with the shortest time comes last: the others wait for it."
    return [Section("MPI by rank", page.note("mpi_call_trace", "nsys", "summed over calls"), columns,
                    (*more(len(compared) - len(shown), "mpi_call_trace"), *listed([said])))]


def waiting(page: Page) -> list[Section]:
    """Return, per execution, how long each rank kept the others waiting in collectives, and what could not be compared."""
    stragglers, sections = _by_execution(page.ask("straggler")), []
    for execution, known in _by_execution(page.ask("collective_coverage")).items():
        rows = stragglers.get(execution, [])
        ranked = [row for row in rows if row["rank"] is not None]
        ordered = sorted(ranked, key=lambda row: (-(row["caused_delay_ns"] or 0), row["rank"]))
        shown = ordered if len(ordered) <= _MANY else ordered[:_TOP]
        waited = spread((row["wait_ns"] for row in ranked), duration)
        sections.append(Section(
            "Stragglers", f"{execution[0]}, {max((row['collectives'] for row in ranked), default=0)} matched collectives",
            _delays(shown) if shown else (), (*more(len(ordered) - len(shown), "straggler", f"waited itself {waited}"),
                                              *listed([*_verdicts(rows), *_not_compared(page, execution[0], known)]))))
    return sections


def ends(page: Page) -> list[Section]:
    """Return, per tool and execution, for whom ranks wait in sends and receives: in a pipeline, for other stages."""
    sections = []
    for (tool, _), rows in _by_execution(page.ask("stage_waits")).items():
        shown = sorted(rows, key=lambda row: (-row["wait_ns"], row["rank"], row["peer_rank"]))[:_TOP]
        columns = (
            Column("rank", [_end(row["rank"], row["stage"]) for row in shown], 9, text=True),
            Column("waits for", [_end(row["peer_rank"], row["peer_stage"]) for row in shown], 9, text=True),
            Column("waits", [duration(row["wait_ns"]) for row in shown], 8),
            Column("transfers", [duration(row["transfer_ns"]) for row in shown], 7),
            Column("messages", [number(row["messages"]) for row in shown], 5),
        )
        sections.append(Section("Sends and receives", tool, columns, more(len(rows) - len(shown), "stage_waits")))
    return sections


def _end(rank: int, stage: int | None) -> str:
    return str(rank) if stage is None else f"{rank} (stage {stage})"


def _delays(shown: list[Row]) -> tuple[Column, ...]:
    return (
        Column("rank", [str(row["rank"]) for row in shown], 9),
        Column("last", [number(row["times_last"]) for row in shown], 7),
        Column("delay", [duration(row["caused_delay_ns"]) for row in shown], 8),
        *([Column("held up", [duration(row["inherited_delay_ns"]) for row in shown], 4)]
          if any(row["inherited_delay_ns"] for row in shown) else []),
        *([Column("late or held up", [duration(row["undecided_delay_ns"]) for row in shown], 1)]
          if any(row["undecided_delay_ns"] for row in shown) else []),
        Column("others waited", [duration(row["others_wait_ns"]) for row in shown], 6),
        Column("waited itself", [duration(row["wait_ns"]) for row in shown], 5),
        Column("median arrival", [duration(row["median_arrival_ns"]) for row in shown], 3),
        Column("latest arrival", [duration(row["max_arrival_ns"]) for row in shown], 2),
    )


def _verdicts(rows: list[Row]) -> list[str]:
    """Return the sentences on the stragglers of one execution, and on collectives whose last rank is unknown."""
    hidden = next((row for row in rows if row["rank"] is None), None)
    late = [row for row in rows if row["verdict"] == "straggler"]
    said = [f"Rank {row['rank']} comes last: without it {counted(row['times_last'], 'collective')} would have begun "
            f"{duration(row['caused_delay_ns'])} earlier in total." for row in late]
    said += _as_late(rows, late)
    if hidden is not None:
        error = hidden["lag_threshold_ns"]
        why = "unknown: no common clock" if error is None else f"within the clocks' error, ± {duration(error)}"
        said.append(f"In {counted(hidden['collectives'], 'collective')} the last rank is {why}.")
    if not rows:
        return ["Cannot tell who was late: no collective could be matched across the ranks."]
    return said or ["No rank was late in any collective."]


def _as_late(rows: list[Row], late: list[Row]) -> list[str]:
    """Return a sentence on ranks that usually start as late as a straggler, though seldom last."""
    least = min((max(row["median_arrival_ns"], row["lag_threshold_ns"] or 0) for row in late), default=0)
    ranks = [row["rank"] for row in rows if late and row["rank"] is not None and row not in late
             and (row["median_arrival_ns"] or 0) >= least]
    return [f"R{_named(ranks)[1:]}: median arrival as late as that of a straggler, but seldom the last. Only "
            "the last rank of a collective counts: late ranks hide each other."] if ranks else []


def _not_compared(page: Page, tool: str, known: list[Row]) -> list[str]:
    """Return what communication could not be matched, and the ranks that were left out."""
    kernels, part_ns, total_ns = (sum(row[name] for row in known) for name in ("unmatched_kernels", "unmatched_ns", "total_ns"))
    said = [unmatched(kernels, part_ns, total_ns, "to find who was late")]
    reasons: dict[str, list[int]] = defaultdict(list)
    for row in known:
        if row["left_out"] is not None and row["rank"] is not None:
            reasons[row["left_out"]].append(row["rank"])
    silent = {row["rank"] for row in page.ask("kernel_by_rank") if row["tool"] == tool} - {row["rank"] for row in known} - {None}
    if silent:
        reasons["no communication kernels"].extend(sorted(silent))
    return said + [f"Left out: {_named(ranks)}: {why}." for why, ranks in reasons.items()]


def _named(ranks: list[int]) -> str:
    """Return ranks by name, the first of many: 'rank 3', 'ranks 0, 1'."""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks[:_MANY]))}{' …' if len(ranks) > _MANY else ''}"


def links(page: Page) -> list[Section]:
    """Return the process groups whose collectives take longer than those of their peers."""
    sections = []
    for (tool, _), rows in _by_execution(page.ask("communicator_summary")).items():
        compared = [row for row in rows if row["peers_ns"] is not None]
        slow = [row for row in compared if row["verdict"] in (SLOW, WAITING)]
        if not compared:
            continue
        note, shown = f"{tool}, {number(len(compared))} compared with their peers", slow[:_TOP]
        if slow:
            columns = (
                Column("group", [row["group_name"] or "not named" for row in shown], 7, text=True, flexible=True),
                Column("ranks", [row["members"] for row in shown], 8, text=True, flexible=True),
                Column("operation", [row["collective"] for row in shown], 6, text=True),
                Column("size", [size(row["message_bytes"]) for row in shown], 4),
                Column("calls", [number(row["calls"]) for row in shown], 3),
                Column("transfer", [duration(row["transfer_ns"]) for row in shown], 9),
                Column("peers", [duration(row["peers_ns"]) for row in shown], 9),
                Column("longer in total", [duration(row["excess_ns"]) for row in shown], 5),
                Column("", [row["verdict"] for row in shown], 8, text=True),
            )
            sections.append(Section("Process groups", note, columns, more(len(slow) - len(shown), "communicator_summary")))
        else:
            sections.append(Section("Process groups", note, lines=listed(
                ["None takes longer than its peers of the same size, operation and payload."])))
    return sections


def clocks(page: Page) -> list[Section]:
    """Return how well the ranks' clocks are known."""
    said = []
    for (tool, _), rows in _by_execution(page.ask("rank_clock")).items():
        others = [row for row in rows if row["rank"] != row["reference_rank"]]
        if not others:
            continue
        worst = max(others, key=lambda row: row["uncertainty_ns"])
        far = max(others, key=lambda row: abs(row["offset_ns"]))
        reference = others[0]["reference_rank"]
        if len(others) == 1:
            said.append(f"{tool}: the clock of rank {far['rank']} is {duration(far['offset_ns'])} off that of rank {reference}, "
                        f"± {duration(far['uncertainty_ns'])}.")
        else:
            said.append(f"{tool}: {len(others)} clocks fitted to that of rank {reference}; rank {far['rank']} has the largest "
                        f"offset, {duration(far['offset_ns'])} ± {duration(far['uncertainty_ns'])}; rank {worst['rank']} is the "
                        f"least certain, ± {duration(worst['uncertainty_ns'])}.")
        doubtful = [str(row["rank"]) for row in others if row["same_host"] and not row["shares_clock"]]
        if doubtful:
            said.append(f"{tool}: rank {', '.join(doubtful)} reports the same host as rank {reference}, but has a different "
                        "clock: "
                        "is the host name right?")
    return [Section("Clocks", lines=listed(said))] if said else []


def balance(page: Page) -> list[Section]:
    """Return the work that is most imbalanced over the ranks; communication apart, since whoever waits for others is not slow."""
    tool, rows = best(page.ask("rank_balance"), TIMELINE)
    communication = next((row for row in rows if row["item_kind"] == "family" and row["item"] == "collective"), None)
    rows = [row for row in rows if row["item_kind"] in ("family", "op") and (row["communication_pct"] or 0) < _MOSTLY_PCT]
    rows = sorted(rows, key=lambda row: (-row["imbalance_ns"], row["item"]))[:_FEW]
    if not rows and communication is None:
        return []
    columns = (
        Column("", [row["item_kind"] for row in rows], 5, text=True),
        Column("item", [row["item"] for row in rows], 9, text=True, flexible=True, shortest=NAME),
        Column("slowest rank", [str(row["max_rank"]) for row in rows], 8),
        Column("its time", [duration(row["max_ns"]) for row in rows], 7),
        Column("median", [duration(row["median_ns"]) for row in rows], 6),
        Column("min", [duration(row["min_ns"]) for row in rows], 4),
        Column("variation", [share(row["cv_pct"]) for row in rows], 3),
    ) if rows else ()
    said = []
    if communication is not None:
        least, most = duration(communication["min_ns"]), duration(communication["max_ns"])
        said.append(f"Communication, including waits: {least} to {most}, the most on rank {communication['max_rank']}. "
                    "The rank with the most communication time waits for the others.")
    shared = _shared(page, tool)
    if shared:
        ranks = f"{', '.join(map(str, shared[:_MANY]))}{' …' if len(shared) > _MANY else ''}"
        said.append(f"Rank {ranks}: several processes claim it, and its time is the sum of theirs, here and below. If they "
                    "belong to different jobs, ingest each under its own name (--run).")
    return [Section("Most imbalanced kernel time", f"{tool}, without communication", columns, listed(said))]


def _shared(page: Page, tool: str) -> list[int]:
    """Return the ranks that several processes claim."""
    processes: dict[int, set[str]] = defaultdict(set)
    for row in page.ask("kernel_by_rank"):
        if row["tool"] == tool and row["rank"] is not None:
            processes[row["rank"]].add(row["process_id"])
    return sorted(rank for rank, those in processes.items() if len(those) > 1)


def kernels(page: Page) -> list[Section]:
    """Return the top kernels over all ranks."""
    tool, rows = best(page.ask("kernel_by_rank"), TIMELINE)
    sums: dict[str, dict[int | None, int]] = defaultdict(lambda: defaultdict(int))
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        sums[row["name"]][row["rank"]] += row["total_ns"] or 0
        counts[row["name"]] += row["instances"]
    total = sum(sum(by_rank.values()) for by_rank in sums.values())
    top = sorted(sums, key=lambda name: (-sum(sums[name].values()), name))[:_FEW]
    columns = (
        Column("share", [share(100 * sum(sums[name].values()) / total if total else None) for name in top], 8),
        Column("time", [duration(sum(sums[name].values())) for name in top], 7),
        Column("launches", [number(counts[name]) for name in top], 5),
        Column("kernel", top, 9, text=True, flexible=True, shortest=NAME, kernels=top),
        Column("min per rank", [duration(min(sums[name].values())) for name in top], 3),
        Column("max per rank", [duration(max(sums[name].values())) for name in top], 4),
    )
    return [Section("Top kernels over all ranks", tool, columns)]


def verdicts_first(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the tables behind the page, that with the verdicts on ranks first."""
    return dict(sorted(tables.items(), key=lambda item: item[0] != "straggler"))


def too_few(overview: Iterable[Row], asked: Mapping[str, Collection[object]]) -> NsightlensError:
    """Return what to say where no run has two of the ranks that are asked for: which ones there are, and how to get more.

    overview: rows of profile_overview by TOOLS. asked: column -> values.
    """
    ranks: dict[str, set[str]] = {}
    for row in overview:
        if "run" not in asked or row["run"] in asked["run"]:
            ranks.setdefault(row["run"], set()).update((row["ranks"] or "").split(","))
    several = False
    there = []
    for run, found in ranks.items():
        known = found - {""}
        several |= len(known) > 1
        there.append(f"{run} has rank{'s' * (len(known) > 1)} {spans(known)}" if known else f"no rank of {run} is known")
    needed = "compare ranks needs at least two ranks of a run" + (f": {'; '.join(there)}" if there else "")
    if "rank" in asked and several:
        return UsageError(f"rank {spans(map(str, asked['rank']))}: {needed}", subject="rank", value=list(asked["rank"]))
    return NsightlensError((f"{needed}. ", *_REMEDY))


def sections(made: Mapping[str, Sequence[Sequence[Section]]]) -> list[Section]:
    """Return the pages of runs, each below its name. made: by run, the sections of each of its `parts`."""
    return [section for run, those in made.items() for section in (Section(f"Ranks of {run}"), *chain(*those))]


def parts(page: Page) -> tuple[Callable[[Page], list[Section]], ...]:
    """Return the parts of a run that have something to say: none where fewer than two ranks were recorded."""
    traced = {row["rank"] for row in page.ask("kernel_by_rank") if row["tool"] in TIMELINE} - {None}
    recorded = (to_trace,) if len(page.ask("ranks_to_trace")) > 1 else ()
    return (*recorded, *((bounds, waiting, ends, mpi, links, clocks, balance, kernels) if len(traced) > 1 else ()))
