"""The gallery: every picture that `nsightlens plot` draws, and every tab of the report, of the bundled run."""

from __future__ import annotations

from pathlib import Path

import nsightlens as nl
from docs.site import tabs
from nsightlens.cli.plot import gpus_of, least_disturbed
from nsightlens.errors import NsightlensError

_NEEDS_TWO_RUNS = "run_waterfall"


def gallery(store: nl.Store, pages: Path) -> str:
    """Return the page, and write its pictures below the folder `pages`."""
    folder = pages / "gallery"
    folder.mkdir(exist_ok=True)
    parts = ["# Gallery\n\nThe bundled run, drawn by one command each. It is simulated: no figure is a measurement of a GPU.\n"]
    for name, draw in nl.plots.PLOTS.items():
        if name == _NEEDS_TWO_RUNS:
            continue
        table = least_disturbed(store.view(name))
        more = {} if name == "roofline" else {"gpus": gpus_of(store)}
        try:
            nl.plots.save(draw(table, **more), folder / f"{name}.svg")
        except NsightlensError:  # nothing of it in the bundled run
            continue
        parts.append(f"## {name}\n\n![{store.views[name].summary}](gallery/{name}.svg)\n\n"
                     f"`nsightlens plot {name} -o {name}.png` ([the view](views/{name}.md))\n")
    return "\n".join([*parts, *_report(store, folder)])


def _report(store: nl.Store, folder: Path) -> list[str]:
    """Return the part of the page that shows the report, and write the report and pictures of its tabs below `folder`."""
    shown = tabs.pictures(nl.report(store).save(folder / "report.html"), folder)
    parts = ["## The report\n\n`nsightlens report -o report.html` writes [this page](gallery/report.html) ([more](report.md)). "
             + ("As the browser asks for it, it is light or dark:\n" if shown else f"{tabs.WITHOUT_BROWSER}\n")]
    for tab, by_scheme in shown.items():
        parts.append(f"### {tab}\n\n" + "\n".join(f"![The tab {tab}, {scheme}](gallery/{path.name}#only-{scheme})"
                                                 for scheme, path in by_scheme.items()) + "\n")
    return parts
