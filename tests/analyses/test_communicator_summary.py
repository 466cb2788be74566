"""Process groups compared with their peers: what makes one slow, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from nsightlens.analyses.communicator_summary import _members, beside_peers

Row = dict[str, Any]


def group(name: str, transfer: int | None, ranks: tuple[int, ...] = (0, 1), calls: int = 4, **given: Any) -> Row:
    """Return a process group that is not compared yet: its calls take `transfer` ns."""
    return {"run": "r", "tool": "kineto", "execution_id": None, "group_name": name, "group_size": 2, "method": "name and number",
            "uncertainty_ns": 20, "collective": "allreduce", "message_bytes": 64, "transfer_ns": transfer, "ranks": len(ranks),
            "members": _members(ranks), "calls": calls, "peers": 0, "peers_ns": None, "excess_ns": None,
            "verdict": "cannot tell"} | given


def verdicts(*groups: Row) -> dict[str, tuple[Any, ...]]:
    return {row["group_name"]: (row["verdict"], row["peers"], row["peers_ns"], row["excess_ns"])
            for row in beside_peers([*groups])}


@pytest.mark.parametrize(("transfer", "verdict"), [(1500, "slow"), (1499, "as its peers"), (400, "as its peers")])
def test_a_group_is_slow_from_one_and_a_half_times_its_peers(transfer: int, verdict: str) -> None:
    found = verdicts(group("a", transfer), group("b", 1000), group("c", 900), group("d", 1100))
    assert found["a"] == (verdict, 3, 1000, 4 * (transfer - 1000))
    assert {found[name][0] for name in "bcd"} == {"as its peers"}


def test_what_is_said_of_groups_that_cannot_be_compared() -> None:
    usual = [group(name, 1000) for name in "bcd"]
    assert verdicts(group("a", 3000), group("b", 1000))["a"] == ("cannot tell", 1, None, None), "one peer"
    assert verdicts(group("a", 3000, uncertainty_ns=2000), *usual)["a"][0] == "as its peers", "the clocks may be as far off"
    assert verdicts(group("a", 3000, uncertainty_ns=None), *usual)["a"][0] == "cannot tell", "no clocks"
    assert verdicts(group("a", None), *usual)["a"] == ("cannot tell", 0, None, None)
    for other in ({"message_bytes": 128}, {"collective": "broadcast"}, {"group_size": 4}, {"tool": "nsys"}, {"run": "s"}):
        assert verdicts(group("a", 3000, **other), *usual)["a"] == ("cannot tell", 0, None, None)
    unknown = [group(name, time, message_bytes=None) for name, time in (("a", 3000), ("b", 1000), ("c", 1000))]
    assert verdicts(*unknown)["a"] == ("cannot tell", 2, 1000, 8000), "payloads are not known to be equal"


def test_a_group_may_wait_for_a_rank_that_was_not_captured() -> None:
    wide = [group(name, 1000, group_size=3) for name in "bcd"]
    assert verdicts(group("a", 3000, group_size=3), *wide)["a"][0] == "slow or waiting"
    assert verdicts(group("a", 3000, (0, 1, 2), group_size=3), *wide)["a"][0] == "slow"
    unsized = [group(name, 1000, group_size=None) for name in "bcd"]
    assert verdicts(group("a", 3000, group_size=None), *unsized)["a"][0] == "slow"


def test_slow_groups_come_first() -> None:
    assert list(verdicts(group("a", 1000), group("b", 1000), group("c", 1000), group("d", 1600), group("e", 1700))) == [
        "e", "d", "a", "b", "c"]


@pytest.mark.parametrize(("ranks", "text"), [
    ([3], "3"), ([0, 1], "0, 1"), ([0, 1, 2], "0 to 2"), ([5, 13, 21], "5 to 21 by 8"), ([0, 1, 4], "0, 1, 4"),
    ([0, *range(2, 10)], "9 ranks, 0 to 9")])
def test_members(ranks: list[int], text: str) -> None:
    assert _members(ranks) == text
