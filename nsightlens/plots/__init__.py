"""Arrow table -> matplotlib Figure: one module per plot. The only room that imports matplotlib; import it when needed.

    figure = nsightlens.plots.roofline(store.view("roofline", kernel="gemm"))
    nsightlens.plots.save(figure, "roofline.pdf")
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from nsightlens.plots.distributed_overview import distributed_overview
from nsightlens.plots.kernel_type_breakdown import kernel_type_breakdown
from nsightlens.plots.memory_curve import memory_curve
from nsightlens.plots.operator_summary import operator_summary
from nsightlens.plots.queue_length_series import queue_length_series
from nsightlens.plots.roofline import roofline
from nsightlens.plots.run_waterfall import run_waterfall
from nsightlens.plots.step_breakdown import step_breakdown
from nsightlens.plots.step_timeline import step_timeline
from nsightlens.plots.temporal_breakdown import temporal_breakdown
from nsightlens.plots.top_kernels import top_kernels
from nsightlens.public_calls import gated
from nsightlens.store.outputs import check_ending, whole

__all__ = [
    "FORMATS",
    "PLOTS",
    "distributed_overview",
    "kernel_type_breakdown",
    "memory_curve",
    "operator_summary",
    "queue_length_series",
    "roofline",
    "run_waterfall",
    "save",
    "step_breakdown",
    "step_timeline",
    "temporal_breakdown",
    "top_kernels",
]

# Each plot draws the rows of the view of the same name.
PLOTS: dict[str, Callable[..., Figure]] = {
    "step_breakdown": step_breakdown,
    "temporal_breakdown": temporal_breakdown,
    "kernel_type_breakdown": kernel_type_breakdown,
    "top_kernels": top_kernels,
    "operator_summary": operator_summary,
    "distributed_overview": distributed_overview,
    "memory_curve": memory_curve,
    "queue_length_series": queue_length_series,
    "step_timeline": step_timeline,
    "run_waterfall": run_waterfall,
    "roofline": roofline,
}

FORMATS = ("png", "svg", "pdf")


@gated
def save(figure: Figure, path: str | Path, *, dpi: int = 200) -> Path:
    """Write the figure as PNG, SVG or PDF, by the ending of `path`, and return the path. Texts stay texts in SVG and PDF.

    dpi: dots per inch of a PNG.

    Raises UsageError for another ending, a capture or a file of a store, and NsightlensError where the file cannot be written.
    """
    target = Path(path)
    check_ending(target, [f".{form}" for form in FORMATS])
    # A fixed salt and no date: the same figure gives the same file.
    settings: Any = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "nsightlens"}
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix.lower())
    with whole(target) as file, matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(file, format=target.suffix.lower()[1:], dpi=dpi, metadata=metadata)
    return target


def __getattr__(name: str) -> Any:
    raise AttributeError(f"there is no plot {name}; there are {', '.join(PLOTS)}. Rows of any view can be drawn by matplotlib: "
                         f"store.view({name!r}).to_pandas().plot()")


def __dir__() -> list[str]:
    return list(__all__)
