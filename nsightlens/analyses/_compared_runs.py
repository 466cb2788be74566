"""One side of a comparison of runs: its time trees by recording, operators behind its kernels, and GPUs, under one tool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nsightlens.analyses import Ask
from nsightlens.analyses._run_judgements import judgements
from nsightlens.analyses._runs import TIMELINE
from nsightlens.diagnosis.conditions import LOST
from nsightlens.diagnosis.difference import Side
from nsightlens.diagnosis.tree import Tree
from nsightlens.diagnosis.verdict import sums
from nsightlens.errors import UsageError

_ISSUERS = """
SELECT kernel_key, op, coalesce(op_shapes, '') AS shapes, sum(duration_ns)::BIGINT AS ns FROM kernels
WHERE run = $1 AND tool = $2 AND duration_ns IS NOT NULL AND kernel_key IS NOT NULL GROUP BY ALL
"""
_RECORDINGS = "SELECT profile_id, recording FROM recordings WHERE run = $1 AND tool = $2"
_WORLD = "SELECT max(world_size) AS ranks FROM processes WHERE run = $1 AND tool = $2"


def tools(ask: Ask, run: str) -> list[str]:
    """Return the tools under which a run has a tree, the least disturbing first."""
    there = {each.tool for each in judgements(ask) if each.run == run and each.trees}
    return [tool for tool in TIMELINE if tool in there]


def common_tool(runs: Sequence[str], there: Sequence[Sequence[str]], time: str | None) -> str:
    """Return the tool that all runs are compared under. there: those of each. Raises UsageError where there is none."""
    for tool in (time,) if time else TIMELINE:
        if all(tool in of_run for of_run in there):
            return tool
    names = ", ".join(f"{run} has {', '.join(of_run) or 'no GPU work on a timeline'}"
                      for run, of_run in zip(runs, there, strict=True))
    raise UsageError(f"{' and '.join(runs)} have no timeline of one tool in common ({time or 'nsys or Kineto'}): {names}")


def side(ask: Ask, run: str, tool: str, name: str | None = None, rank: int | None = None) -> Side:
    """Return a run that has trees under a tool. name: what it is called, where not as in the store; rank: its trees alone."""
    judged = next(each for each in judgements(ask) if (each.run, each.tool) == (run, tool))
    trees = [tree for tree in judged.trees if rank is None or tree.rank == rank]
    numbers = {row["profile_id"]: row["recording"] for row in ask(_RECORDINGS, [run, tool]).to_pylist()}
    recordings: dict[int, list[Tree]] = defaultdict(list)
    for tree in trees:
        recordings[numbers.get(tree.profile_id) or 0].append(tree)
    issuers: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    for row in ask(_ISSUERS, [run, tool]).to_pylist():
        by_issuer = issuers[row["kernel_key"]]
        if row["op"] is not None:
            by_issuer[row["op"], row["shapes"]] = row["ns"]
    ranks = ask(_WORLD, [run, tool])["ranks"][0].as_py() or 0
    devices = [len({(tree.profile_id, tree.process_id, tree.device_id) for tree in each}) for each in recordings.values()]
    missing = sum(condition.count for condition in judged.conditions if condition.code == LOST)
    return Side(name or run, tool, sums(trees), tuple(tuple(each) for each in recordings.values()), issuers,
                max([ranks, *devices]), missing)
