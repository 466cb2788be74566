"""What lies around what, against the rules said plainly: one range and one chain at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.attribution.range_tree import PHASES, RangeIndex, RangeRows, index, nested, traits
from nsightlens.columns.arrays import MISSING

BACKWARD = "autograd::engine::evaluate_function: X"
KINDS = [
    ("operator", "aten::a"), ("operator", "aten::b"), ("operator", BACKWARD), ("operator", "XBackward0"),
    ("module", "nn.Module: M"), ("step", "s"),
    ("annotation", "forward"), ("annotation", "x"), ("annotation", "backward"), ("annotation", "Optimizer.step#S"),
]
SAYS = {"module": "forward", "forward": "forward", "backward": "backward", "Optimizer.step#S": "optimizer", BACKWARD: "backward",
        "XBackward0": "backward"}


@dataclass(frozen=True)
class Range:
    """A range; its end is inside of it."""

    kind: str
    name: str
    track: int
    start: int
    end: int
    sequence: int | None


RANGES = st.lists(st.builds(
    lambda kind, track, start, length, sequence: Range(kind[0], kind[1], track, start, start + length,
                                                       sequence if kind[0] == "operator" else None),
    st.sampled_from(KINDS), st.integers(0, 1), st.integers(0, 12), st.integers(0, 9), st.none() | st.integers(0, 2)), max_size=12)


def _index(ranges: list[Range]) -> RangeIndex:
    templates = pa.RecordBatch.from_arrays(
        [pa.array([kind for kind, _ in KINDS]).dictionary_encode(), pa.array([name for _, name in KINDS]).dictionary_encode(),
         pa.nulls(len(KINDS), pa.int64())], names=["kind", "name", "forward_thread"])
    start = np.array([one.start for one in ranges], dtype=np.int64)
    known = RangeRows(
        np.array([KINDS.index((one.kind, one.name)) for one in ranges], dtype=np.int32),
        np.array([one.track for one in ranges], dtype=np.int32), np.zeros(len(ranges), dtype=np.int32),
        np.array([MISSING if one.sequence is None else one.sequence for one in ranges], dtype=np.int64), traits([templates]))
    duration = np.array([one.end for one in ranges], dtype=np.int64) - start
    return index(known, nested(known, start, duration, unclosed=False))


def _chains(ranges: list[Range]) -> dict[int, list[int]]:
    """Each range and all around it, from the inside to the outside."""
    order = sorted(range(len(ranges)), key=lambda i: (ranges[i].track, ranges[i].start, -ranges[i].end, i))
    chains: dict[int, list[int]] = {}
    for at, one in enumerate(order):
        around = [o for o in order[:at] if ranges[o].track == ranges[one].track and ranges[o].end >= ranges[one].end]
        chains[one] = [one, *(chains[around[-1]] if around else [])]
    return chains


def _is_backward(one: Range) -> bool:
    return one.name in (BACKWARD, "XBackward0")


def _forward_of(ranges: list[Range], chains: dict[int, list[int]]) -> dict[int, int]:
    """The forward operator of each backward one, without thread numbers: on the one thread that has its number."""
    within, candidates = {}, []
    for one, (_, *outer) in chains.items():
        backward = [o for o in outer if _is_backward(ranges[o])]
        within[one] = next((o for o in backward if ranges[o].sequence != ranges[one].sequence), None)
        part = bool(backward) and ranges[backward[0]].sequence == ranges[one].sequence
        if ranges[one].sequence is not None and not _is_backward(ranges[one]) and not part:
            candidates.append(one)
    found = {}
    for one in chains:
        if not _is_backward(ranges[one]) or ranges[one].sequence is None:
            continue
        same = [c for c in candidates if ranges[c].sequence == ranges[one].sequence and within[c] == within[one]]
        before = [c for c in same if ranges[c].start <= ranges[one].start]
        if len({ranges[c].track for c in same}) == 1 and before:
            place = {row: at for at, row in enumerate(chains)}
            found[one] = max(before, key=lambda c: (ranges[c].start, place[c]))
    return found


@given(RANGES)
def test_parents_operators_modules_and_phases(ranges: list[Range]) -> None:
    found, chains = _index(ranges), _chains(ranges)
    tree = found.tree
    forward = _forward_of(ranges, chains)
    assert tree.forward.tolist() == [forward.get(row, -1) for row in range(len(ranges))]
    linked = set()
    for target in forward.values():
        for row in chains[target]:
            if ranges[row].sequence != ranges[target].sequence:
                break
            linked.add(row)
    place = {row: at for at, row in enumerate(tree.rows.tolist())}
    for row, (_, *outer) in chains.items():
        chain = [row, *outer]
        assert tree.parent[row] == (outer[0] if outer else -1)
        assert tree.depth[row] == len(outer)
        operators = [o for o in chain if ranges[o].kind == "operator"]
        assert tree.row(tree.operator_at(np.array([place[row]], dtype=np.int32))).tolist() == (operators or [-1])[:1]
        assert tree.operator_parent[row] == next((o for o in operators if o != row), -1)
        says = [(o, "forward" if o in linked else SAYS.get(ranges[o].kind) or SAYS.get(ranges[o].name)) for o in chain]
        said = [word for _, word in says if word]
        phase = said[0] if said else None
        if phase == "forward" and "backward" in said:
            phase = "backward"
        assert PHASES[found.phase[place[row]]] == phase
        modules = [o for o in chain if ranges[o].kind == "module"]
        if not modules:
            targets = [forward[o] for o in chain if o in forward][:1]
            modules = [o for target in targets for o in chains[target] if ranges[o].kind == "module"]
        module = found.module[place[row]]
        assert (tree.rows[module] if module >= 0 else -1) == (modules[0] if modules else -1)


@given(RANGES, st.lists(st.integers(0, 22), max_size=5))
def test_steps_are_the_outermost_of_the_process(ranges: list[Range], times: list[int]) -> None:
    steps = [row for row, one in enumerate(ranges) if one.kind == "step"]
    found = _index(ranges).nested.steps
    order = sorted(steps, key=lambda row: (ranges[row].start, -ranges[row].end, ranges[row].track, row))
    outer = [row for at, row in enumerate(order) if not any(ranges[o].end >= ranges[row].end for o in order[:at])]
    assert sorted(found.rows.tolist()) == sorted(outer)
    assert sorted(found.inner.tolist()) == sorted(set(steps) - set(outer))
    places = found.at(np.zeros(len(times), dtype=np.int32), np.array(times, dtype=np.int64))
    for time, at in zip(times, places.tolist(), strict=True):
        open_ = [row for row in outer if ranges[row].start <= time < ranges[row].end]
        assert (found.rows[at] if at >= 0 else -1) == (open_[-1] if open_ else -1)
    assert found.at(np.zeros(1, dtype=np.int32), np.array([MISSING])).tolist() == [-1]
