"""The sentences on a run that only ncu measured: the kernel that takes most time, what limits it, and ncu's own first rule."""

from __future__ import annotations

import re

from nsightlens.diagnosis.counters import SM, Counters, Measured, Rule
from nsightlens.views.figures import counted, duration, number, rate, share

_UNITS = {
    "DRAM": "memory: DRAM", "L2": "the L2 cache: L2", "L1/TEX": "the L1 cache: L1/TEX", "LSU": "loads and stores: LSU",
    "FP64": "double precision: FP64", "FP16": "half precision: FP16", "FMA": "multiplications and additions: FMA",
    "tensor": "the tensor cores: tensor pipe", "memory": "the memory system: memory",
    "instruction issue": "instructions: issue slots",
}
"""What is meant by a unit, then the unit itself."""
_STALLS = {
    "barrier": "at barriers of their block", "long_scoreboard": "for memory (long scoreboard)",
    "short_scoreboard": "for shared memory (short scoreboard)", "lg_throttle": "for the queue of loads and stores (LG throttle)",
    "mio_throttle": "for the queue of the MIO", "tex_throttle": "for the queue of TEX", "math_pipe_throttle": "for a busy pipe",
    "wait": "for the fixed latency of instructions", "no_instruction": "for instructions", "no_instructions": "for instructions",
    "imc_miss": "for constants", "drain": "for stores to leave", "membar": "at memory barriers", "sleeping": "asleep",
}
"""For what warps wait, by the names that ncu gives to stalls."""
_WARP = 32
_HALF_PCT = 50
_NAME = 60
"""Characters of a kernel's name."""


def measured(counters: Counters) -> str:
    """Return what ncu says of a run that only it measured."""
    top, whole = counters.kernels[0], counters.timed_ns
    if top.ns is None or not whole:
        first = f"ncu recorded no times, so that kernels cannot be weighed; {_short(top.name)}: {limit(top)}."
    else:
        first = (f"Of {duration(whole)} under ncu, {_short(top.name)} takes {share(100 * top.ns / whole)} ({duration(top.ns)}): "
                 f"{limit(top)}.")
    untimed = sum(kernel.ns is None for kernel in counters.kernels) if whole else 0
    missing = f" The time of {counted(untimed, 'other kernel')} is not known." if untimed else ""
    return f"{first}{_rule(counters.rule) if counters.rule else ''}{missing}"


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[:_NAME - 1]}…"


def limit(kernel: Measured) -> str:
    """Return what limits a kernel, with the figures that say so."""
    idle = "; its tensor pipes are idle" if kernel.is_plain else ""
    return f"{_limit(kernel)}{idle}"


def _limit(kernel: Measured) -> str:
    if kernel.limit == "small grid":
        return f"too small a grid, {_fill(kernel)}{_occupancy(kernel)}"
    if kernel.limit == "small blocks":
        return f"blocks of {counted(kernel.threads or 0, 'thread')}, where a warp has {_WARP}"
    if kernel.limit == "latency":
        return (f"limited by latency, no unit is above {_pct(kernel, 'unit_pct')} of its peak ({kernel.unit})"
                f"{_occupancy(kernel)}{_stall(kernel)}")
    if kernel.limit and kernel.unit == SM:
        return (f"limited by one of the pipes of the SM, at {_pct(kernel, 'unit_pct')} of its peak; which one was not collected"
                f"{_dram(kernel)}")
    if kernel.limit:
        unit = _UNITS.get(kernel.unit, f"one pipe: {kernel.unit}")
        return f"limited by {unit} at {_pct(kernel, 'unit_pct')} of its peak{_dram(kernel)}"
    return _unknown(kernel)


def _fill(kernel: Measured) -> str:
    """Return how little of the GPU a grid fills."""
    waves = f"{kernel.figures['waves']:.2g} waves" if kernel.figures.get("waves") else ""
    if kernel.blocks and kernel.sms:
        return f"{counted(kernel.blocks, 'block')} for {number(kernel.sms)} SMs{f' ({waves})' if waves else ''}"
    return f"{counted(kernel.blocks, 'block')}, less than a wave" if kernel.blocks and not waves else f"{waves} of blocks"


def _unknown(kernel: Measured) -> str:
    """Return what is known of a kernel whose limit is not."""
    works = kernel.unit and kernel.figures.get("unit_pct") != 0
    busiest = f"the busiest unit collected is {kernel.unit}, {_pct(kernel, 'unit_pct')} of its peak" if works else ""
    moves = kernel.figures.get("dram_bytes_per_s")
    if busiest and ("memory_pct" in kernel.figures or "dram_pct" in kernel.figures):
        return f"{busiest}, and what limits it is unknown"
    if not busiest and moves is None:
        return f"what limits it is unknown, as no throughput {'of another unit ' if kernel.unit else ''}was collected"
    memory = "memory was not collected" if moves is None else f"DRAM moves {rate(moves, 'B')}, of a peak that is not recorded"
    return f"{busiest or 'what limits it is unknown'}; {memory}"


def _dram(kernel: Measured) -> str:
    """Return what DRAM moved where it is the limit, else how busy it was."""
    moves = kernel.figures.get("dram_bytes_per_s")
    if kernel.unit == "DRAM":
        return "" if moves is None else f" ({rate(moves, 'B')})"
    if moves is not None and "dram_pct" not in kernel.figures:
        return f"; DRAM moves {rate(moves, 'B')}"
    return f"; DRAM {_pct(kernel, 'dram_pct')}" if "dram_pct" in kernel.figures else ""


def _stall(kernel: Measured) -> str:
    """Return for what warps wait, where it is one thing above all."""
    pct = kernel.figures.get("stall_pct", 0)
    if not kernel.stall or pct < _HALF_PCT:
        return ""
    return f"; warps wait {_STALLS.get(kernel.stall, f'for {kernel.stall}')} {share(pct)} of the time"


def _occupancy(kernel: Measured) -> str:
    """Return what keeps occupancy low by the launch; else how high it was."""
    most = kernel.figures.get("max_occupancy_pct", 100)
    if kernel.occupancy_limit and most <= _HALF_PCT:
        return f"; occupancy is limited to {share(most)} by {kernel.occupancy_limit}"
    if kernel.limit != "latency" or "occupancy_pct" not in kernel.figures:
        return ""
    return f"; occupancy {_pct(kernel, 'occupancy_pct')}"


def _pct(kernel: Measured, figure: str) -> str:
    return share(kernel.figures.get(figure))


def _rule(rule: Rule) -> str:
    return f" ncu's rule {rule.name} estimates {share(rule.speedup_pct)} to win: {_first_sentence(rule.message)}"


def _first_sentence(text: str) -> str:
    plain = " ".join(re.sub(r"@url:([^:@]*):[^@]*@|@\w+:\w+:([^@]*)@", r"\1\2", text).split())
    end = re.search(r"\.(?= |$)", plain)
    return plain[:end.end()] if end else plain
