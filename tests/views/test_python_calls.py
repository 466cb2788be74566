"""Commands in texts become the calls of Python that do the same."""

from __future__ import annotations

import pytest

from nsightlens.views.python_calls import python_calls


@pytest.mark.parametrize(("text", "expected"), [
    ("More: nsightlens show critical_path only_rank=3 --sort=-duration_ns.",
     'More: store.view("critical_path", only_rank=3).sort_by([("duration_ns", "descending")]).'),
    ("a (nsightlens show recordings), b", 'a (store.view("recordings")), b'),
    ("nsightlens show kernel_by_rank --rank 0 how=x", 'store.view("kernel_by_rank", only_rank=0, how="x")'),
    ("nsightlens show headroom (gains)", 'store.view("headroom") (gains)'),
    ("nsightlens compare ranks", "nl.compare(store, ranks=True)"),
    ("nsightlens compare ranks --run base.", 'nl.compare(store, ranks=True, run="base").'),
    ("nsightlens compare runs base fused", 'nl.compare(store, "base", "fused")'),
    ("nsightlens summary --run base", 'nl.summary(store, run="base")'),
    ("nsightlens roofline --time nsys", 'nl.plots.roofline(store.view("true_roofline", time="nsys"))'),
    ("nsightlens plot step_breakdown --output steps.png",
     'nl.plots.save(nl.plots.step_breakdown(store.view("step_breakdown")), "steps.png")'),
    ('nsightlens sql "FROM files"', 'store.sql("FROM files")'),
    ("nsightlens ingest CAPTURE --run NAME; then", 'nl.ingest("CAPTURE", run="NAME"); then'),
    ("ingest each with a --run NAME of its own", 'ingest each with a run="NAME" of its own'),
    ("nsightlens remove --run base", 'nl.remove(store, run="base")'),
    ("nsightlens plan-ncu, then roofline", "nsightlens plan-ncu, then roofline"),
    ("record with a --run-id for each", "record with a --run-id for each"),
])
def test_a_command_becomes_its_call(text: str, expected: str) -> None:
    assert python_calls(text) == expected
