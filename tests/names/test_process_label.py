"""process_label: the number of a process, and its profile where the number alone is not enough."""

from __future__ import annotations

import pytest

from nsightlens.names.process_label import process_label

ONE, OTHER, SAME_NUMBER = "kineto-fa89dc55b09c:0", "kineto-fa89dc55b09c:1", "nsys-0123456789ab:0"


@pytest.mark.parametrize(("process_id", "among", "label"), [
    (ONE, [ONE], "0"),
    (ONE, [ONE, OTHER], "0"),
    (OTHER, [ONE, OTHER, SAME_NUMBER], "1"),
    (ONE, [ONE, OTHER, SAME_NUMBER], "fa89dc:0"),
    (SAME_NUMBER, [ONE, OTHER, SAME_NUMBER], "012345:0"),
    (ONE, [ONE, ONE], "0"),
])
def test_a_process_is_called_by_what_tells_it_from_the_others(process_id: str, among: list[str], label: str) -> None:
    assert process_label(process_id, among) == label
