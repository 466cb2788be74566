"""Small files that unpack to endless ones: each reader stops or passes on, keeps what it has read, and says so."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from nsightlens.discovery.export import PACKED_SQLITE, convert
from nsightlens.readers import budget
from nsightlens.readers.budget import OVER_BUDGET, Budget
from nsightlens.readers.gzip_lines import Lines
from tests.readers.kineto_text import Tables, kernel, read, trace

PIECE = 1 << 12


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every budget is small enough for a test."""
    monkeypatch.setattr(budget, "BUDGET", Budget(longest=1 << 14, unpacked=1 << 20, density=20, idle=1 << 16))


def kernels(first: int, last: int) -> list[str]:
    """Return kernels that begin at these times, in us."""
    return [kernel(f"{at}.500", name="k") for at in range(2_000_000 + first, 2_000_000 + last)]


def told(found: Tables) -> list[tuple[int, int]]:
    """Return count and place of what was said about the budget."""
    return [(row["count"], row["byte_offset"]) for row in found["diagnostics"] if row["code"] == OVER_BUDGET]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("long", [1 << 16, 1 << 19])
def test_a_name_without_end_costs_its_own_event(tmp_path: Path, pack: Callable[[bytes], bytes], long: int) -> None:
    endless = kernel("2000500.5", name="A" * long)
    found = read(tmp_path / "t.json", pack(trace(*kernels(0, 50), endless, *kernels(600, 650)).encode()), piece_bytes=PIECE)
    assert len(found["kernels"]) == 100
    ((count, place),) = told(found)
    assert count == 1 and place is not None
    (profile,) = found["profiles"]
    assert (profile["events_lost"], profile["truncated"]) == (1, False)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_last_event_has_a_name_without_end(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    content = trace(*kernels(0, 50), kernel("2000500.5", name="A" * (1 << 17))).encode()
    found = read(tmp_path / "t.json", pack(content), piece_bytes=PIECE)
    assert len(found["kernels"]) == 50 and told(found)


@pytest.mark.parametrize("filling", [b"\0", b" "])
def test_a_hole_in_a_trace(tmp_path: Path, filling: bytes) -> None:
    """It costs at most the event beside it."""
    before, after = trace(*kernels(0, 50), "HERE", *kernels(600, 650)).encode().split(b"HERE,")
    found = read(tmp_path / "t.json", before + filling * (1 << 19) + after, piece_bytes=PIECE)
    assert len(found["kernels"]) >= 99 and told(found)


def test_a_trace_under_gzip_is_unpacked_up_to_the_budget(tmp_path: Path) -> None:
    text = trace(*kernels(0, 50)).encode()
    end = text.rindex(b"}\n  ]") + 1
    packed = gzip.compress(text[:end] + b",\n" + (b" " * 1000 + kernel().encode() + b",\n") * 5000 + text[end:])
    found = read(tmp_path / "t.json.gz", packed, piece_bytes=PIECE)
    assert 50 < len(found["kernels"]) < 5050
    assert found["profiles"][0]["truncated"] and found["profiles"][0]["events_lost"] is None
    assert [row["code"] for row in found["diagnostics"] if row["severity"] == "warning"] == [OVER_BUDGET]


def test_a_trace_without_more_events_is_not_read_on_and_on(tmp_path: Path) -> None:
    """Every piece begins like an event, and holds none."""
    begun = trace(*kernels(0, 50))[:-len("\n  ]\n}")]
    found = read(tmp_path / "t.json", begun + ',\n{"ph": {},\n' * (1 << 15), piece_bytes=PIECE)
    assert len(found["kernels"]) == 50 and found["profiles"][0]["truncated"] and told(found)


def test_a_dense_but_sound_trace_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BUDGET", Budget())
    found = read(tmp_path / "t.json.gz", gzip.compress(trace(*[kernel()] * 20_000).encode()), piece_bytes=PIECE)
    assert len(found["kernels"]) == 20_000 and not told(found)


def test_lines_under_gzip_are_unpacked_up_to_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"line\n" * (1 << 20)))
    lines = Lines(path)
    held = sum(map(len, lines.bytes_lines()))
    assert 1 << 20 < held < (1 << 20) + 100
    assert lines.is_cut and lines.why_cut[0] == OVER_BUDGET


def test_sqlite_under_gzip_is_unpacked_up_to_the_budget(tmp_path: Path) -> None:
    """Its header states 4 TiB."""
    header = PACKED_SQLITE.magic + (4096).to_bytes(2, "big") + bytes(10) + (1 << 30).to_bytes(4, "big")
    (tmp_path / "a.sqlite.gz").write_bytes(gzip.compress(header + bytes(8 << 20)))
    assert convert(PACKED_SQLITE, tmp_path / "a.sqlite.gz", tmp_path / "a.sqlite").stat().st_size == 1 << 20


@pytest.mark.long
def test_real_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of 1 GB in a file of 1 MB."""
    monkeypatch.undo()
    start, end = trace(*kernels(0, 50), kernel("2000500.5", name="NAME"), *kernels(600, 650)).encode().split(b"NAME")
    with gzip.open(tmp_path / "t.json.gz", "wb") as file:
        file.write(start)
        for _ in range(1024):
            file.write(b"A" * (1 << 20))
        file.write(end)
    found = read(tmp_path / "t.json.gz", (tmp_path / "t.json.gz").read_bytes())
    assert len(found["kernels"]) == 100 and [count for count, _ in told(found)] == [1]
