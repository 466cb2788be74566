"""shape_agreement: what a ratio of counted operations or bytes to those from shapes is called."""

from __future__ import annotations

import pytest

from nsightlens.analyses.shape_agreement import _bytes_verdict, _flop_verdict

PAIRS = "from shapes: 2 per multiply-add, pairs on and below the diagonal (kernels compute whole tiles: more)"


@pytest.mark.parametrize(("ratio", "is_product", "key", "definition", "verdict"), [
    (1.0, True, "sgemm", "", "agree"),
    (1.019, True, "sgemm", "", "agree"),
    (1.3, True, "sgemm", "", "more: tiles are computed whole, padding of the shapes included"),
    (1.6, True, "flash_fwd_kernel", PAIRS, "more: tiles on the diagonal of a causal mask are computed whole"),
    (2.5, True, "flash_fwd_kernel", PAIRS, "more: tiles are computed whole, padding of the shapes included"),
    (0.44, True, "volta_scudnn_winograd_128x128", "", "fewer: winograd needs fewer than the direct algorithm"),
    (0.44, True, "sgemm", "", "fewer: not explained by the name"),
    (1.5, False, "relu", "", "counted by convention: instructions are not the operator's arithmetic"),
])
def test_operations(ratio: float, is_product: bool, key: str, definition: str, verdict: str) -> None:
    assert _flop_verdict(ratio, is_product, key, definition, 1, 1) == verdict


def test_operations_without_a_ratio() -> None:
    said = [_flop_verdict(None, True, "k", "", counted, told) for counted, told in ((None, 1), (1, None), (1, 0))]
    assert said == ["operations were not counted", "operations are not known from shapes", "none by shapes"]


@pytest.mark.parametrize(("ratio", "key", "verdict"), [
    (None, "k", None), (0.99, "k", "agree"), (0.5, "k", "fewer: a cache held part of it"),
    (1.5, "volta_splitK_nn", "more: split-K writes partial results"),
    (1.5, "k", "more: data is read or written again, or the tiles are padded"),
])
def test_bytes(ratio: float | None, key: str, verdict: str | None) -> None:
    assert _bytes_verdict(ratio, key) == verdict
