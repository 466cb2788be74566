"""What changed from one run to another: the tables behind `nsightlens compare runs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nsightlens.analyses import run_difference
from nsightlens.terminal.command import Command
from nsightlens.terminal.text import written
from nsightlens.views import run_sentences

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store


_PARTS = ("item", "base_ns", "other_ns", "difference_ns", "low_ns", "high_ns")
_SHOWN = ("item", "base_ns", "other_ns", "difference_ns", "change_pct", "verdict", "in_recordings")
_ROWS = 12


class Comparison(dict[str, "pa.Table"]):
    """The tables of a comparison by name; printed, and in a notebook, its verdict.

    base, other: the runs. unrelated: that they have nothing in common, as a sentence, or nothing. first: that, or the verdict
    in one sentence; nothing where neither steps nor launches can be compared. verdict: this, and what the change of the step
    time says.
    """

    def __init__(self, base: str, other: str, by: str, tables: dict[str, pa.Table], threshold_pct: float) -> None:
        super().__init__(tables)
        self.base, self.other = base, other
        self.unrelated = run_sentences.unrelated(tables["differences"].to_pylist(), base, other, by)
        steps = tables["step"].to_pylist()
        self.first = self.unrelated or run_sentences.verdict(
            steps[0] if steps else None, tables["differences"].to_pylist(), (base, other), by, threshold_pct)
        of_steps = [text for row in steps for text in run_sentences.sentences(row, threshold_pct)]
        self.verdict = [*self.first, *(written(text, Command.python) for text in of_steps)]

    @property
    def _said(self) -> list[str]:
        differ = ", ".join(row["property"] for row in self["comparability"].to_pylist() if row["same"] is False)
        return [f"{self.other} against {self.base}", *self.verdict,
                *([f"The recordings differ in {differ}: see comparability."] if differ else [])]

    def __repr__(self) -> str:
        """Return the verdict and the names of the tables with their numbers of rows."""
        tables = ", ".join(f"{name} ({table.num_rows})" for name, table in self.items())
        return "\n".join([*self._said, f"tables (rows): {tables}"])

    def _repr_html_(self) -> str:
        """Return the verdict, where the step time went, and what changed most, as notebooks show them."""
        from nsightlens.views.html_table import escaped, html_table

        said = "".join(f"<p>{escaped(line)}</p>" for line in self._said)
        return said + "".join(html_table(table, _ROWS) for table in (
            self["waterfall"].select(_PARTS), self["differences"].select(_SHOWN)) if table.num_rows)


def of_runs(
    store: Store, base: str | None = None, other: str | None = None, *, by: str | None = None, per: str = "run",
    threshold_pct: float = 1.0, on_question: Callable[[int, int, str], None] | None = None, **judging: Any,
) -> Comparison:
    """Return what makes two runs hard to compare, where the step time went, and what changed, as rows of these views:

    comparability, step (run_difference of whole steps), waterfall (run_waterfall), differences (run_difference of items).

    base, other: may be left out where the store has two runs. by, per, threshold_pct, judging: parameters of those views;
    without `by`, the waterfall is of families and the items are kernels.
    on_question: called before each question: how many are answered, of how many, and its view.
    Raises UsageError for runs and parameters that there are not.
    """
    base, other = run_difference.named(store.sql, base, other)
    asked = {"base": base, "other": other, "threshold_pct": threshold_pct, **judging}
    questions: dict[str, tuple[str, dict[str, Any]]] = {
        "comparability": ("comparability", {"base": base, "other": other}),
        "step": ("run_difference", {"by": "step", **asked}),
        "waterfall": ("run_waterfall", {"by": by if by not in (None, "step") else "family", "per": per, **asked}),
        "differences": ("run_difference", {"by": by or "kernel", **asked}),
    }
    found: dict[str, pa.Table] = {}
    for name, (view, parameters) in questions.items():
        if on_question:
            on_question(len(found), len(questions), view)
        found[name] = store.view(view, **parameters)
    return Comparison(base, other, by or "kernel", found, threshold_pct)
