"""What changed from one run to another: the tables behind `nsightlens compare runs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store


def of_runs(
    store: Store, base: str, other: str, *, by: str | None = None, per: str = "run",
    on_question: Callable[[int, int, str], None] | None = None, **judging: Any,
) -> dict[str, pa.Table]:
    """Return what makes two runs hard to compare, where the step time went, and what changed, as rows of these views:

    comparability, step (run_difference of whole steps), waterfall (run_waterfall), differences (run_difference of items).

    by, per, judging: their parameters; without `by`, the waterfall is of families and the items are kernels.
    on_question: called before each question: how many are answered, of how many, and its view.
    Raises UsageError for runs and parameters that there are not.
    """
    asked = {"base": base, "other": other, **judging}
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
    return found
