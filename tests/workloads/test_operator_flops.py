"""The same calls as PyTorch's own counter of operations sees them, and as its profiler writes them down. Needs PyTorch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nsightlens.op_cost import CONTRACTIONS, contractions, convolutions, work

torch = pytest.importorskip("torch")
functional = pytest.importorskip("torch.nn.functional")
counter = pytest.importorskip("torch.utils.flop_counter")


def counted(run: Callable[[], Any], path: Path) -> tuple[int, int]:
    """Return the operations of `run` by PyTorch's counter, and by our formulas from the trace of its profiler."""
    with counter.FlopCounterMode(display=False) as mode:
        run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        run()
    profile.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    calls = [event for event in events if event.get("cat") == "cpu_op" and event["name"] in CONTRACTIONS]
    inner = [one for one in calls if not any(inside(other, one) for other in calls if other is not one)]
    found = Counter[str]()
    for event in inner:
        dims, types, concrete = (json.dumps(event["args"].get(key)) for key in ("Input Dims", "Input type", "Concrete Inputs"))
        known = work(event["name"], dims, types, concrete)
        assert known.flop is not None and known.bytes, (event["name"], known.reason)
        found[event["name"]] += known.flop
    return mode.get_total_flops(), sum(found.values())


def inside(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(other["ts"] <= one["ts"] and one["ts"] + one["dur"] <= other["ts"] + other["dur"])


def tensors(*shapes: tuple[int, ...]) -> list[Any]:
    return [torch.randn(*shape, requires_grad=True) for shape in shapes]


def backward(run: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: run().sum().backward()


A, B, C, X, W, T = tensors((6, 10), (10, 14), (3, 6, 10), (2, 4, 9, 9), (8, 4, 3, 3), (4, 6, 3, 3))
D, BIAS = tensors((3, 10, 5), (14,))


@pytest.mark.parametrize("run", [
    lambda: A @ B, lambda: torch.addmm(BIAS, A, B), lambda: torch.bmm(C, D), lambda: torch.matmul(C, B),
    lambda: functional.linear(C, B.T), lambda: torch.einsum("bij,bjk->bik", C, D),
    lambda: functional.conv2d(X, W, stride=2, padding=1), lambda: functional.conv2d(X, W, dilation=2),
    lambda: functional.conv_transpose2d(X, T, stride=2, output_padding=1),
    backward(lambda: functional.conv2d(X, W, stride=2, padding=1)), backward(lambda: functional.conv_transpose2d(X, T)),
    backward(lambda: functional.linear(C, B.T)),
], ids=range(12))
def test_operations_are_those_of_the_flop_counter(run: Callable[[], Any], tmp_path: Path) -> None:
    theirs, ours = counted(run, tmp_path / "trace.json")
    assert ours == theirs > 0


def test_attention_without_a_causal_mask_is_counted_alike() -> None:
    shape = (2, 4, 16, 32)
    theirs = counter.sdpa_flop_count(shape, shape, shape)
    ours = work("aten::_scaled_dot_product_flash_attention", json.dumps([list(shape)] * 3 + [[]] * 4), json.dumps(
        ["c10::Half"] * 3 + ["Scalar"] * 4), '["", "", "", "0.", "False", "False", "0.1"]')
    assert ours.flop == theirs


def arguments(name: str) -> list[list[str]]:
    return [[one.name for one in schema.arguments] for schema in torch._C._jit_get_schemas_for_operator(name)]


@pytest.mark.parametrize("name", [name for name in contractions._CAUSAL if name.startswith("aten::")])
def test_is_causal_stands_where_this_pytorch_has_it(name: str) -> None:
    for names in arguments(name):
        place = contractions._MOVED.get((name, len(names)), contractions._CAUSAL[name])
        assert names[place] == "is_causal"
        assert "window_size_left" not in names or names[contractions._WINDOW[name, len(names)]] == "window_size_left"


@pytest.mark.parametrize("name", [*contractions._MASK_TYPE, *convolutions.FORWARD, *convolutions._GROUPS])
def test_arguments_stand_where_this_pytorch_has_them(name: str) -> None:
    names = arguments(name)[0]
    places = convolutions.FORWARD.get(name)
    fields = ("stride", "padding", "dilation", "output_padding", "transposed", "bias")
    told = {} if places is None else {field: getattr(places, field) for field in fields}
    told |= {"groups": convolutions._GROUPS[name]} if name in convolutions._GROUPS else {}
    told |= {"custom_mask_type": contractions._MASK_TYPE[name]} if name in contractions._MASK_TYPE else {}
    assert {field: names[place] for field, place in told.items() if type(place) is int} == {
        field: field for field, place in told.items() if type(place) is int}
