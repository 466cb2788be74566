"""NVTX cells of ncu, in the form in which it prints them."""

from __future__ import annotations

import pytest

from nsightlens.readers.ncu.nvtx import State, states

_NONE = ":none:none:none:none:none:none"


def cell(*names: str, domain: str = "<default domain>") -> str:
    return "4711" + "".join(f'  "{domain}:{name}{_NONE}"' for name in names) + " "


@pytest.mark.parametrize(("text", "expected"), [
    (cell("forward"), State(None, ((None, "forward"),))),
    (cell("ProfilerStep#3", "forward", "module:layer1.0.conv1"), State(3, ((None, "forward"), (None, "module:layer1.0.conv1")))),
    (cell("training", "step 12"), State(12, ((None, "training"),))),
    (cell("step 1", "iteration 7"), State(1, ((None, "iteration 7"),))),
    (cell("aten::conv2d, seq = 41, op_id = 7, sizes = [[512, 3], []]"), State(None, ((None, "aten::conv2d"),))),
    (cell("ncclAllReduce", domain="NCCL"), State(None, (("NCCL", "ncclAllReduce"),))),
    (cell("step 3", domain="mine"), State(3, ())),
    (cell("a") + ' | 7:<default domain>:job:none', State(None, ((None, "a"),))),
    ("4711  \"<default domain>:a:none:0:ARGB:0xff00ff00:ASCII:a\"", State(None, ((None, "a"),))),
    (None, None), ("", None), ("1 <default domain>:forward:none", None), ('0:<default domain>:job' + _NONE, None),
    ('1  "a' + _NONE + '"  2  "b' + _NONE + '"', None),
    ('"' * 5000, None), ("1 " + '"a:' * 3000, None),
])
def test_states(text: str | None, expected: State | None) -> None:
    assert states([text, text]) == [expected, expected]
