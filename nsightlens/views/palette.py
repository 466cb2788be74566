"""One colour per kind of work, the same on every page and picture; colour-blind readers can distinguish them (Okabe and Ito)."""

from __future__ import annotations

BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, YELLOW, GREY, PALE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#8C8C8C", "#E3E3E3")
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY)
FAMILIES = {"gemm": BLUE, "convolution": SKY, "attention": PURPLE, "normalization": GREEN, "reduction": "#7FCDB4",
            "elementwise": AMBER, "optimizer": YELLOW, "collective": ORANGE, "memory": "#B3B3B3", "other": "#595959"}
CATEGORIES = {"kernel": BLUE, "memcpy": SKY, "memset": GREEN, "communication": ORANGE, "runtime": AMBER, "data_loader": PURPLE,
              "cpu_exec": YELLOW, "other": PALE}
"""Of `step_breakdown`, in its order of priority, GPU first."""
BRANCHES = {"computing": BLUE, "communication": ORANGE, "copies": SKY, "idle": AMBER, "not recorded": GREY}
"""Of `time_tree`."""
SLICES = {**FAMILIES, "graph, kernels unknown": "#1A1A1A", "API call": "#F5CFA0", "operator": "#C4DCEE", "module": "#BFE5D6",
          "annotation": "#EAD0E0"}
"""What lies on a timeline: the GPU's work in full colours, what the CPU did in pale ones."""
_KINDS = {"memory": "memory", "graph": "graph, kernels unknown", "api_call": "API call", "operator": "operator",
          "module": "module"}


def slice_kind(kind: str, family: str | None) -> str:
    """Return the key of SLICES for a row of `step_timeline`."""
    if kind == "kernel":
        return family if family in FAMILIES else "other"
    return _KINDS.get(kind, "annotation")
