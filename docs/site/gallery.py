"""The gallery: every picture that `nsightlens plot` draws, of the bundled run."""

from __future__ import annotations

from pathlib import Path

import nsightlens as nl
from nsightlens.cli.plot import gpus_of, of_best_tool
from nsightlens.errors import NsightlensError

_NEEDS_TWO_RUNS = "run_waterfall"
_BESIDE = """
## The report

![The report of the bundled run: verdict, key figures, where each step went](report.png)

`nsightlens report -o report.html` ([the report](report.md))
"""


def gallery(store: nl.Store, pages: Path) -> str:
    """Return the page, and write its pictures below the folder `pages`."""
    folder = pages / "gallery"
    folder.mkdir(exist_ok=True)
    parts = ["# Gallery\n\nThe bundled run, drawn by one command each. It is simulated: no figure is a measurement of a GPU.\n"]
    for name, draw in nl.plots.PLOTS.items():
        if name == _NEEDS_TWO_RUNS:
            continue
        table = of_best_tool(store.view(name))
        more = {} if name == "roofline" else {"gpus": gpus_of(store)}
        try:
            nl.plots.save(draw(table, **more), folder / f"{name}.svg")
        except NsightlensError:  # nothing of it in the bundled run
            continue
        parts.append(f"## {name}\n\n![{store.views[name].summary}](gallery/{name}.svg)\n\n"
                     f"`nsightlens plot {name} -o {name}.png` ([the view](views/{name}.md))\n")
    return "\n".join(parts) + _BESIDE
