"""The verdict: the first findings as sentences; late ranks are one, with what their hosts do meanwhile."""

from __future__ import annotations

from typing import Any

from nsightlens.pages.findings_page import sentence
from nsightlens.terminal.command import Command
from nsightlens.terminal.text import written
from nsightlens.views.finding import command_of, verdict_of
from tests.finding_rows import ROW as LATE
from tests.finding_rows import findings

HOST = LATE | {"rule": "host", "what": "the GPU idles while the host is busy elsewhere", "why": "Work comes slowly.",
               "total_ns": 200_000_000, "of_ns": 600_000_000, "share_pct": 33.3}
COPIES = LATE | {"rule": "copies", "rank": 0, "what": "copies not hidden by kernels", "why": "Keep it there."}


def _verdict(*rows: dict[str, Any]) -> list[str]:
    return verdict_of(findings(*rows))


def test_one_late_rank() -> None:
    assert _verdict(LATE) == ["Rank 3: the other ranks wait for it: 1.500 s of 5.000 s of all ranks, 30.0 %."]


def test_how_long_the_others_wait_stands_before_the_cause() -> None:
    late = LATE | {"evidence": "it arrived last in 5 of 8; its host is late"}
    assert _verdict(late) == [
        "Rank 3: the other ranks wait for it: 1.500 s of 5.000 s of all ranks, 30.0 %; it arrived last in 5 of 8; its host is "
        "late."]


def test_late_ranks_and_what_their_hosts_do() -> None:
    second = LATE | {"rank": 6, "total_ns": 1_000_000_000, "share_pct": 20.0}
    said = _verdict(LATE, second, HOST, HOST | {"rank": 6}, COPIES)
    assert said == [
        "Ranks 3, 6: the other ranks wait for them: 1.500 s of 5.000 s of all ranks, 30.0 %; 1.000 s of 5.000 s of all ranks, "
        "20.0 %; their hosts are late, 200.0 ms of 600.0 ms each, 33.3 %: the GPU idles while the host is busy elsewhere.",
        "Rank 0: copies not hidden by kernels: 1.500 s of 5.000 s, 30.0 %."]


def test_a_finding_of_several_ranks_has_the_least_and_the_most() -> None:
    """The row with the largest share need not have the longest time."""
    more = COPIES | {"rank": 1, "total_ns": 1_600_000_000, "of_ns": 6_000_000_000, "share_pct": 26.7}
    assert _verdict(COPIES, more) == [
        "Ranks 0-1: copies not hidden by kernels: 1.500 to 1.600 s each, 26.7 to 30.0 %."]
    short = COPIES | {"rank": 1, "total_ns": 900_000_000}
    assert "900.0 ms to 1.500 s of 5.000 s each" in _verdict(COPIES, short)[0]


def test_a_host_of_other_ranks_is_not_their_cause() -> None:
    first, second = _verdict(LATE, HOST | {"rank": 2})
    assert "host" not in first and second.startswith("Rank 2: the GPU idles while the host")


def test_of_many_late_ranks_the_first_are_named() -> None:
    first, = _verdict(*(LATE | {"rank": rank} for rank in range(6)))
    assert first.startswith("Ranks 0, 1, 2, 3 and 2 more: ") and first.count("30.0 %") == 4


def test_late_ranks_that_are_not_the_first_finding_keep_their_place() -> None:
    assert [finding.who for finding in findings(COPIES, LATE)] == ["rank 0", "rank 3"]
    first, second = _verdict(COPIES, LATE)
    assert first.startswith("Rank 0") and second.startswith("Rank 3")


def test_a_finding_in_words_names_the_processes_that_share_it() -> None:
    row = COPIES | {"rule": "data_loader", "tool": "nsys", "what": "what", "total_ns": 4_000_000, "of_ns": 10_000_000,
                    "share_pct": 40.0}
    (both,) = findings(row, row | {"rank": 1, "share_pct": 30.0, "total_ns": 3_000_000})
    assert written(sentence(both)) == (
        "data loader (nsys; ranks 0-1; 3.000 to 4.000 ms of 10.00 ms each; 30.0 to 40.0 %; limit 5 %; confidence high): what. "
        "Keep it there. But: Perhaps not. More: nsightlens compare ranks")


def test_a_finding_of_two_tools_has_the_figures_of_the_less_disturbing_one() -> None:
    (both,) = findings(COPIES, COPIES | {"tool": "nsys", "what": "less", "share_pct": 30.1, "total_ns": 3_000_000})
    assert (both.tool, both.others, both.what, both.amount) == ("nsys", ("kineto",), "less", "3.000 ms of 5.000 s, 30.1 %")


def test_that_nothing_is_worth_doing_comes_with_its_bound() -> None:
    nothing = LATE | {"rule": "nothing", "rank": None, "what": "nothing is worth doing", "limit_pct": None, "share_pct": 1.0,
                      "total_ns": 4_000_000, "of_ns": 400_000_000}
    whole = nothing | {"who": "all ranks"}
    assert _verdict(whole) == ["Nothing is worth doing; outside compute kernels: 4.000 ms of 400.0 ms of all ranks, 1.0 %."]
    assert _verdict(nothing) == ["Nothing is worth doing; outside compute kernels: 4.000 ms of 400.0 ms, 1.0 %."]


def test_kernels_far_below_their_roof_are_cards_of_their_own() -> None:
    slow = LATE | {"rule": "headroom", "rank": 0, "subject": "a", "what": "it runs at 20 % of its memory roof"}
    found = findings(slow, slow | {"rank": 1, "what": "it runs at 21 % of its memory roof"}, slow | {"subject": "b"})
    assert [(finding.subject, finding.who) for finding in found] == [("a", "ranks 0-1"), ("b", "rank 0")]


def test_three_sentences_at_most_and_one_where_nothing_was_found() -> None:
    rules = [COPIES | {"rule": rule, "why": rule} for rule in "abcd"]
    assert len(_verdict(*rules)) == 3
    assert _verdict() == ["No finding: this capture has no timeline to judge."]


def test_hosts_of_one_advice_are_one_card_whatever_their_figures() -> None:
    few = [HOST | {"rank": rank, "what": f"the GPU idles: {rank} kernels of 4.000 µs on average"} for rank in (1, 2)]
    first, second = findings(*few, HOST | {"rank": 3, "why": "Look at the CPU."})
    assert (first.who, second.who) == ("ranks 1-2", "rank 3") and first.what.endswith("on average, figures of rank 1")
    (loader,) = findings(*(HOST | {"rank": None, "process_id": name, "what": f"the GPU idles ({name})"} for name in "ab"))
    assert loader.what == "the GPU idles (a), figures of the one with the largest share"
    assert second.what == HOST["what"], "one has no other to be told from"


def test_where_a_store_has_several_runs_the_commands_name_theirs() -> None:
    path = Command("show", ("critical_path", ("--rank", "3"), ("--sort", "-duration_ns")))
    rows = [LATE, HOST | {"run": "my run", "command": path.fields}, HOST | {"command": ["plan-ncu"]}]
    assert [command_of(row, ["r"]) for row in rows] == [Command("compare ranks"), path, Command("plan-ncu")]
    assert [str(command_of(row, ["r", "my run"])) for row in rows] == [
        "nsightlens compare ranks --run r", "nsightlens show critical_path --run 'my run' --rank 3 --sort=-duration_ns",
        "nsightlens plan-ncu --run r"]
