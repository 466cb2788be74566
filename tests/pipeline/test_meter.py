"""How far reading is: what is done, and what was read of the profiles begun; those that wait are not looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsightlens.pipeline import meter
from nsightlens.pipeline.meter import Meter, Progress, counter


def test_only_profiles_that_are_begun_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at, told = list[str](), list[Progress]()

    def looked(path: Path) -> int:
        looked_at.append(path.name)
        return 7

    monkeypatch.setattr(meter, "bytes_read", looked)
    found = Meter(tmp_path, {f"p{number}": (f"{number}.json", 10) for number in range(1000)}, told.append)
    for name in ("p5", "p6", "stranger"):
        counter(tmp_path, name).touch()
    found.finished("p6", "p6")
    found.finished("p6", "again")
    assert looked_at == ["p5.read"] * 2
    assert told[1] == Progress(1, 1000, "again", 17, 10_000, (("5.json", 7, 10),))


def test_what_is_read_is_never_more_than_there_is(tmp_path: Path) -> None:
    told = list[Progress]()
    counter(tmp_path, "p").write_bytes((99).to_bytes(8, "little"))
    Meter(tmp_path, {"p": ("a", 10)}, told.append).finished("", "unknown")
    assert (told[0].read_bytes, told[0].all_bytes, told[0].reading) == (10, 10, (("a", 10, 10),))
