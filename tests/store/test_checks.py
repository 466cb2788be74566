"""What the store tells of profiles that were counted as one run, and should perhaps not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from nsightlens.pipeline.ingest import ingest
from nsightlens.store.checks import CONFLICTS
from tests.captures import GEMM, kineto
from tests.catalogs import catalog, rows_of

HEAD = "run,tool,profile_id,execution_id,origin_epoch_ns,gpu_first_ns,gpu_last_ns"
NOON = 1_700_000_000_000_000_000


def found(profiles: list[str], ranks: str = "") -> list[dict[str, Any]]:
    """Return the rows of times_pooled. profiles: `name,first,last[,tool[,execution]]` in seconds; ranks: `name=rank ...`."""
    rows = []
    for text in profiles:
        name, first, last, *more = text.split(",")
        tool, execution = (*more, "kineto", "")[:2] if len(more) < 2 else more
        times = f"{NOON},{round(float(first) * 1e9)},{round(float(last) * 1e9)}" if first else ",,"
        rows.append(f"base,{tool},{name},{execution},{times}")
    paths = [f"/r/{text.split(',')[0]}.json,{text.split(',')[0]}" for text in profiles]
    who = [f"{word.split('=')[0]},{word.split('=')[1]}" for word in ranks.split()]
    connection = catalog(
        profiles=rows_of("profiles", "\n".join([HEAD, *rows])),
        processes=rows_of("processes", "\n".join(["profile_id,rank", *who])),
        files=rows_of("files", "\n".join(["path,profile_id", *paths])))
    result = connection.execute(CONFLICTS["times_pooled"])
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def test_captures_of_two_times_and_unknown_rank_are_told() -> None:
    (row,) = found(["a,0,5", "b,100,105"])
    assert (row["run"], row["tool"], row["profile_id"], row["count"], row["severity"]) == ("base", "kineto", "b", 2, "warning")
    assert "a.json (2023-11-14 22:13:20 UTC), b.json (2023-11-14 22:15:00 UTC)" in row["message"]
    assert "--run NAME" in row["message"]


@pytest.mark.parametrize(("profiles", "ranks", "times"), [
    (["a,0,5", "b,3,9", "c,8,12"], "", 0),                       # at one time, one after the other in a chain
    (["a,0,5", "b,5.9,9"], "", 0),                               # clocks of hosts
    (["a,0,5", "b,6.1,9"], "", 2),
    (["a,0,50", "b,1,2", "c,49,52"], "", 0),                     # within a long one
    (["a,0,5", "b,100,105"], "a=0 b=1", 0),                      # ranks that complete each other
    (["a,0,5", "b,100,105"], "a=0 b=0", 2),                      # one rank twice
    (["a,0,5", "b,100,105"], "a=0", 2),
    (["a,0,5,nsys", "b,100,105,kineto"], "", 0),                 # two tools are two executions
    (["a,0,5,kineto,e1", "b,100,105,kineto,e2"], "", 0),         # sidecars say so
    (["a,0,5,ncu", "b,100,105,ncu"], "", 0),                     # ncu has no timeline
    (["a,,", "b,100,105"], "", 0),                               # no time known
    (["a,0,1", "b,10,11", "c,20,21", "d,30,31", "e,40,41", "f,50,51"], "", 6),
])
def test_when_times_are_pooled(profiles: list[str], ranks: str, times: int) -> None:
    rows = found(profiles, ranks)
    assert [row["count"] for row in rows] == ([times] if times else [])
    assert times < 5 or ("d.json" in rows[0]["message"] and "e.json" not in rows[0]["message"] and "2 more" in rows[0]["message"])


def test_ingest_says_it_once_and_takes_it_back(tmp_path: Path) -> None:
    later = [(GEMM, 60e6, 10.0)]
    kineto(tmp_path / "base" / "a.json", pid=1)
    kineto(tmp_path / "base" / "b.json", later, pid=2)

    def told() -> list[tuple[Any, ...]]:
        with duckdb.connect(str(tmp_path / "store" / "nsightlens.duckdb"), read_only=True) as store:
            return store.execute("SELECT path, run FROM diagnostics WHERE code = 'times_pooled'").fetchall()

    ingest([tmp_path / "base"], tmp_path / "store")
    ingest([tmp_path / "base"], tmp_path / "store")
    assert told() == [(str(tmp_path / "base" / "b.json"), "base")]
    for name in "ab":
        (tmp_path / "base" / f"{name}.run.json").write_text(json.dumps({"run": "base", "execution_id": name}))
    ingest([tmp_path / "base"], tmp_path / "store")
    assert told() == []
