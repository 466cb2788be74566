"""Views are found by what people call things, and nothing is found for words that no view is about."""

from __future__ import annotations

import pytest

from nsightlens.errors import UsageError
from nsightlens.views import registry, search


@pytest.mark.parametrize(("question", "view"), [
    ("AMP", "operator_summary"), ("layers", "module_summary"), ("mfu", "shape_work"), ("tensor cores", "operator_summary"),
    ("data loader", "step_breakdown"), ("dataloader", "step_breakdown"), ("h2d", "memory_op_summary"), ("oom", "memory_peak"),
    ("slowest rank", "straggler"), ("fusion", "frequent_kernel_sequences"), ("regression", "run_difference"),
    ("page faults", "kernel_page_faults"), ("why is the GPU idle", "idle_causes"), ("flamegraph", "stack_summary"),
    ("throttling", "device_sample_summary"), ("allreduce", "collective_summary"), ("stall", "idle_causes"),
    ("bytes copied from the host", "memory_op_summary"), ("memory copies who issues", "memory_op_summary"),
    ("communication hidden overlap", "comm_compute_overlap"), ("duration of each step", "step_breakdown"),
    ("launch latency", "kernel_launch_summary"),
])
def test_what_people_call_things(question: str, view: str) -> None:
    assert view in search.about(question, registry.known())[:5]


@pytest.mark.parametrize("question", ["xylophone", "the", "", "%%%", "loss", "xylophone idle"])
def test_nothing_is_about_other_words(question: str) -> None:
    assert search.about(question, registry.known()) == []


def test_a_name_that_is_none_leads_to_views_about_it() -> None:
    with pytest.raises(UsageError, match="step_breakdown"):
        registry.named("dataloader", registry.known())
    with pytest.raises(UsageError) as error:
        registry.named("xylophone", registry.known())
    assert "did you mean" not in str(error.value)
