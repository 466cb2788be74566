"""Figures show themselves in a notebook, without pyplot and without %matplotlib inline."""

from __future__ import annotations

from pathlib import Path

import nsightlens as nl


def test_a_figure_is_a_png_in_a_notebook(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        figure = nl.plots.step_breakdown(store.view("step_breakdown", only_tool="nsys"))
    shown = getattr(figure, "_repr_png_")()  # noqa: B009 - what IPython asks for
    assert shown.startswith(b"\x89PNG") and len(shown) > 10_000


def test_an_editor_is_offered_what_is_for_people() -> None:
    assert set(dir(nl.plots)) == set(nl.plots.__all__)
