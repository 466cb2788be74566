"""Which views answer a question that is put in other words than theirs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from math import log

from nsightlens.views.header import View

_MEANINGS = {
    "module": ("layer", "layers", "nn", "submodule"),
    "operator": ("op", "ops", "aten", "torch"),
    "tensor core": ("amp", "bf16", "cores", "fp16", "fp8", "half", "mixed", "tf32"),
    "precision": ("amp", "bf16", "fp16", "fp32", "fp8", "mixed", "tf32"),
    "roofline": ("arithmetic", "flops", "flop", "mfu", "peak", "utilization"),
    "data loader": ("dataloader", "dataset", "input", "loader"),
    "idle": ("bottleneck", "bubble", "gap", "hang", "host", "stall", "starved", "waiting"),
    "collective": ("allgather", "allreduce", "broadcast", "ddp", "nccl", "rccl", "reducescatter"),
    "communication": ("allreduce", "comm", "nccl", "network", "nvlink", "overlap", "rccl"),
    "others wait for": ("imbalance", "late", "lagging", "skew", "slowest"),
    "memory op": ("copied", "copies", "copy", "d2d", "d2h", "h2d", "memcpy", "memset", "pcie", "transfer"),
    "peak memory": ("allocation", "allocator", "leak", "oom"),
    "unified memory": ("fault", "managed", "migration", "page", "uvm"),
    "fusion": ("fuse", "fused", "compile", "graph"),
    "launch": ("latency", "overhead", "queue"),
    "step": ("epoch", "iteration", "iterations"),
    "stack": ("flame", "flamegraph", "python", "traceback"),
    "range": ("annotation", "marker", "nvtx"),
    "clocks": ("frequency", "power", "temperature", "throttle", "throttling"),
    "occupancy": ("block", "grid", "register", "registers", "warp", "warps"),
    "changed between": ("compare", "diff", "difference", "regression", "slower"),
}
"""Words of the views' texts, each with what else people call it."""
_EMPTY = re.compile(r"an?|and|are|at|by|costs?|does|do|for|from|how|i[nst]|me|most|much|my|o[fn]|show|the|there|takes?|to|"
                    r"wh(at|ere|ich|o|y)")
"""Words of a question that say nothing."""
_WORD = re.compile(r"[^\W_]+")
_TITLE, _FIRST, _ANYWHERE = 4, 2, 1
"""What a word is worth in a name, in the first sentence, and elsewhere."""
_FEWEST = 2
"""Words that a view must have where it lacks others."""


def about(question: str, views: Mapping[str, View], preferred: Collection[str] = ()) -> list[str]:
    """Return the names of the views that a question is about, best first; none: an empty list.

    They have half of its words or more, of two both, or what these mean; a word that few views have weighs more. preferred:
    names that come first among views that are as near.
    """
    words = _words(question)
    found = {name: worths for name, view in views.items() if any(worths := _worths(words, view))} if words else {}
    weights = [log(1 + len(views) / (1 + sum(bool(worths[place]) for worths in found.values()))) for place in range(len(words))]
    scores = {}
    for name, worths in found.items():
        if (count := sum(map(bool, worths))) == len(words) or (count >= _FEWEST and 2 * count >= len(words)):
            score = sum(worth * weight for worth, weight in zip(worths, weights, strict=True))
            scores[name] = score + (name in preferred) + _TITLE * (question in dict(views[name].columns))
    return sorted(scores, key=lambda name: (-scores[name], name))


def _worths(words: list[str], view: View) -> list[int]:
    """Return how much of a view is about each word."""
    title = _text(view.name, *(alias.name for alias in view.aliases))
    first = _text(view.summary)
    whole = _text(view.doc, *(f"{name} {doc}" for name, doc in view.columns), *(f"{p.name} {p.doc}" for p in view.params))
    found = []
    for word in words:
        meant = [word, *_meant(word)]
        found.append(sum(worth for text, worth in ((title, _TITLE), (first, _FIRST), (whole, _ANYWHERE))
                         if any(f" {one}" in text for one in meant)))
    return found


@cache
def _meant(word: str) -> list[str]:
    return [ours for ours, others in _MEANINGS.items() if word in others or word in {f"{other}s" for other in others}]


def _words(question: str) -> list[str]:
    """Return the words of a question, singular."""
    return [word if len(word) < len("plural") - 1 else word.removesuffix("s") for word in _WORD.findall(question.lower())
            if not _EMPTY.fullmatch(word)]


def _text(*texts: str) -> str:
    return " " + " ".join(_WORD.findall(" ".join(texts).lower()))
