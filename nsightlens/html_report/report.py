"""A store as one HTML file: what fits goes in, and the page says what does not."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsightlens.errors import UsageError
from nsightlens.html_report.assets import render, script, style
from nsightlens.html_report.contents import Contents, OnStep
from nsightlens.html_report.overview import overview
from nsightlens.html_report.questions import QUESTIONS, comparison
from nsightlens.public_calls import gated
from nsightlens.store.comparison import compare_two_runs
from nsightlens.store.outputs import check_ending, whole
from nsightlens.views.registry import unknown

if TYPE_CHECKING:
    from nsightlens.store.store import Store

ENDINGS = (".html", ".htm")
_FIRST_PART = 200_000  # bytes kept for the template and the static first part


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A report: the whole page, and what was left out of it for its size. In a notebook it displays itself."""

    html: str
    left_out: tuple[str, ...]

    def __repr__(self) -> str:
        """Return its size, what was left out of it, and what writes it."""
        size = f"nsightlens report, an HTML page of {len(self.html.encode()) / 1e6:.1f} MB"
        return "\n".join([f'{size}: .save("report.html") writes it', *(f"left out: {text}" for text in self.left_out)])

    @gated
    def save(self, path: str | Path) -> Path:
        """Write the page, whole or not at all, and return its path.

        Raises UsageError for a name that ends in neither .html nor .htm, a capture or a file of a store, NsightlensError where it
        cannot be written.
        """
        target = Path(path)
        check_ending(target, ENDINGS)
        with whole(target) as file:
            file.write(self.html.encode())
        return target

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, as notebooks show it."""
        return f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="720" title="nsightlens report"></iframe>'


def report(store: Store, *, run: str | Sequence[str] | None = None, base: str | None = None, max_mb: float = 10,
           on_step: OnStep | None = None) -> Report:
    """Return the report of a store, or of some of its runs.

    run: name or names; none: all. base: the run with which `run` is compared; the page then has a tab for it.
    max_mb: size of the file in MB of 1,000,000 bytes; beyond it steps are merged or left out, longest tables first, and the
    page says so. on_step: called before each table and step of the timeline is made. Raises UsageError for a run
    that the store does not have, and for a base without one run.
    """
    runs = [run] if isinstance(run, str) else list(run or ())
    there = [name for name in dict.fromkeys(store.view("profile_overview")["run"].to_pylist()) if name is not None]
    for name in [*runs, *([base] if base else [])]:
        if name not in there:
            raise unknown("run", name, there)
    if not there:
        raise UsageError("nothing to report: the store is empty")
    if base is not None and len(runs) != 1:
        raise UsageError("a comparison needs two runs: the one to judge (run) and its baseline (base)", subject="run", value=run,
                         choices=sorted(there))
    compared = comparison(base, runs[0]) if base else ()
    if base:
        runs = [*runs, base]
    budget = int(max_mb * 1e6) - len(script()) - len(style()) - _FIRST_PART
    contents = Contents(store, runs, budget, on_step)
    contents.add(QUESTIONS, compared)
    said = compare_two_runs(store, base, runs[0], by=None).verdict if base else []
    facts: dict[str, Any] = contents.facts() | {
        "runs": runs or there, "compared": [base, runs[0]] if base else [], "compared_said": said}
    overviews = [overview(name, contents.answers) for name in facts["runs"]]
    facts["windows"] = {one.run: one.window for one in overviews}
    return Report(render(contents.packed, facts, overviews), tuple(contents.left_out))
