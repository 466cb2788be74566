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

from nsightlens.errors import NsightlensError, UsageError
from nsightlens.plots.roofline import roofline

__all__ = ["FORMATS", "PLOTS", "roofline", "save"]

PLOTS: dict[str, Callable[..., Figure]] = {
    "roofline": roofline,
}

FORMATS = ("png", "svg", "pdf")


def save(figure: Figure, path: str | Path) -> Path:
    """Write the figure as PNG, SVG or PDF, by the ending of `path`, and return the path. Texts stay texts in SVG and PDF.

    Raises UsageError for another ending and NsightlensError where the file cannot be written.
    """
    target = Path(path)
    if target.suffix.lower().lstrip(".") not in FORMATS:
        raise UsageError(f"{target}: a figure is written as {', '.join('.' + f for f in FORMATS)}")
    # A fixed salt and no date: the same figure gives the same file.
    settings: Any = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "nsightlens"}
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix.lower())
    try:
        with matplotlib.rc_context(settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")
            figure.savefig(target, dpi=200, metadata=metadata)
    except OSError as exc:
        raise NsightlensError(f"{target}: cannot be written ({exc.strerror})") from exc
    return target
