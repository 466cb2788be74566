"""After an upgrade: exactly what the rules changed is read again, and nothing is lost; a store of an older schema is rebuilt."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

import nsightlens as nl
from nsightlens.cli.ingest import command as ingest_command
from nsightlens.cli.refresh import command as refresh_command
from nsightlens.errors import OldRulesWarning, StoreError
from nsightlens.matching import cross_tool
from nsightlens.pipeline.refresh import refresh
from nsightlens.schema import SCHEMA_VERSION, TABLES
from nsightlens.store import rules, template
from nsightlens.store.store import Store
from tests.captures import kineto
from tests.other_version import OtherVersion
from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
RULES = {
    "names": {"nsys", "kineto", "ncu"},
    "kineto": {"kineto"},
    "steps": set(),
    "launches": {"nsys", "kineto", "ncu"},
    "attribution": {"nsys", "kineto"},
}
"""Which tools' profiles a rule matters for, of those in the store."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """One rank under three tools: three profiles."""
    others = shutil.ignore_patterns("truth", "rank0.sqlite*", "rank0.pt*", "*.md")
    shutil.copytree(RUN, tmp_path / "run", ignore=others)
    return tmp_path / "run"


@pytest.fixture
def store(run: Path, tmp_path: Path) -> Path:
    nl.ingest(run, store=tmp_path / "store", jobs=1)
    return tmp_path / "store"


def _parts(store: Path) -> dict[str, set[str]]:
    """Return the parts of each profile: a profile that is read again has others."""
    with duckdb.connect(str(store / "nsightlens.duckdb"), read_only=True) as plain:
        rows = plain.execute("SELECT profile_id, path FROM _parts").fetchall()
    found: dict[str, set[str]] = {}
    for profile, path in rows:
        found.setdefault(profile, set()).add(path)
    return found


def _tools_read_again(before: dict[str, set[str]], after: dict[str, set[str]]) -> set[str]:
    assert before.keys() == after.keys()
    return {profile.partition("-")[0] for profile in before if before[profile] != after[profile]}


def _raise(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    monkeypatch.setitem(rules.VERSIONS, rule, rules.VERSIONS[rule] + 1)


def _older_profiles(store: Path) -> int:
    with Store(store) as opened:
        return len(opened.older_than_the_rules())


@pytest.mark.parametrize("again", ["refresh", "ingest"])
def test_an_upgrade(again: str, run: Path, store: Path, tmp_path: Path) -> None:
    """Two versions of one schema, each a program of its own."""
    other = OtherVersion(tmp_path / "other").edit(
        "store/rules.py", f'"kineto": {rules.VERSIONS["kineto"]}', '"kineto": 99')
    said = other.run("sql", "SELECT 1", "--store", store).stderr
    assert said.count("\n") == 1 and "1 profile is older than the rules" in said
    assert f"nsightlens refresh --store {store}" in said
    before = _parts(store)
    done = other.run(*(["refresh"] if again == "refresh" else ["ingest", run]), "--store", store)
    assert done.returncode == 0
    assert ("1 profile read again, 0" if again == "refresh" else "1 replaced, 2 unchanged") in done.stderr
    assert _tools_read_again(before, _parts(store)) == {"kineto"}
    assert other.run("sql", "SELECT 1", "--store", store).stderr == ""


@pytest.mark.parametrize("rule", RULES)
def test_exactly_the_profiles_whose_rules_changed_are_read_again(
    rule: str, store: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    _raise(monkeypatch, rule)
    assert _older_profiles(store) == len(RULES[rule])
    before = _parts(store)
    assert refresh(store, jobs=1).matched == 0
    after = _parts(store)
    assert _tools_read_again(before, after) == RULES[rule]
    assert _older_profiles(store) == 0
    refresh(store, jobs=1)
    assert _parts(store) == after


def test_rules_that_matter_for_each_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {tool: rules.signature("content", tool) for tool in ("nsys", "ncu", "kineto", "steps")}
    assert before["steps"] == "content|reader=1|"
    monkeypatch.setitem(rules.VERSIONS, "steps", 2)
    assert [tool for tool, signature in before.items() if rules.is_read_by_older(signature, tool)] == ["steps"]
    monkeypatch.undo()
    monkeypatch.setitem(rules.VERSIONS, "matching", 7)
    assert [tool for tool, signature in before.items() if rules.is_older(signature, tool)] == ["nsys", "ncu", "kineto"]
    assert not any(rules.is_read_by_older(signature, tool) for tool, signature in before.items())
    assert rules.is_read_by_older("a digest of a version without rules", "nsys")


def test_matches_alone_are_made_again_without_the_captures(run: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cross_tool.matches
    _raise(monkeypatch, "matching")
    monkeypatch.setattr(cross_tool, "matches", lambda ask, runs: made(ask, runs).slice(0, 3))
    before = _parts(store)
    shutil.rmtree(run)
    assert _older_profiles(store) == 3
    done = _refreshed(store)
    assert "0 profiles read again, 3 profiles matched again" in done.stderr
    assert "4 captures gone, their rows are kept" in done.stderr
    assert _parts(store) == before
    with nl.open(store) as opened:
        assert opened.sql("SELECT count(*) AS n FROM matches").to_pylist() == [{"n": 3}]
    assert _older_profiles(store) == 0


def test_an_ingest_makes_the_matches_again_too(run: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _raise(monkeypatch, "matching")
    monkeypatch.setattr(cross_tool, "matches", lambda ask, runs: TABLES["matches"].schema.empty_table())
    before = _parts(store)
    nl.ingest(run, store=store, jobs=1)
    assert _parts(store) == before and _older_profiles(store) == 0
    with nl.open(store) as opened:
        assert opened.sql("SELECT count(*) AS n FROM matches").to_pylist() == [{"n": 0}]


def test_what_is_gone_is_named_and_its_rows_are_kept(run: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _raise(monkeypatch, "names")
    gone = run / "nsys" / "rank1.sqlite"
    before, content = _content(store), gone.read_bytes()
    gone.unlink()
    done = _refreshed(store)
    assert done.exit_code == 0 and f"1 capture gone, their rows are kept: {gone}" in done.stderr
    assert "2 profiles read again" in done.stderr
    assert _older_profiles(store) == 0, "there is nothing more to run"
    assert _content(store) == before
    gone.write_bytes(content)
    assert "1 profile read again" in _refreshed(store).stderr


def test_ranks_by_a_pattern_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kineto(tmp_path / "run" / "card7.json")
    nl.ingest(tmp_path / "run", store=tmp_path / "store", rank_pattern=r"card(\d+)", jobs=1)
    before = _content(tmp_path / "store")
    _raise(monkeypatch, "attribution")
    assert "1 profile read again" in _refreshed(tmp_path / "store").stderr
    assert {row["rank"] for row in before} == {7}
    assert _content(tmp_path / "store") == before


def _older(folder: Path) -> OtherVersion:
    return OtherVersion(folder).edit("schema.py", f"SCHEMA_VERSION = {SCHEMA_VERSION}", f"SCHEMA_VERSION = {SCHEMA_VERSION - 1}")


@pytest.fixture
def older(run: Path, tmp_path: Path) -> Path:
    """A store of the schema version before, made from `run`."""
    done = _older(tmp_path / "older").run("ingest", run, "--store", tmp_path / "old")
    assert done.returncode == 0, done.stderr
    return tmp_path / "old"


def _content(store: Path) -> list[dict[str, object]]:
    with nl.open(store) as opened:
        table = opened.sql("SELECT kernel_id, run, rank, name, start_ns, step, op FROM kernels ORDER BY ALL")
    return list(table.to_pylist())


def _refreshed(store: Path) -> Result:
    return CliRunner().invoke(refresh_command, ["--store", str(store), "--jobs", "1"])


def test_of_an_older_schema_the_files_can_be_listed_and_nothing_else(older: Path, run: Path) -> None:
    with nl.open(older) as opened:
        assert opened.older_schema == SCHEMA_VERSION - 1
        files = opened.sql("SELECT path, outcome FROM files WHERE profile_id IS NOT NULL ORDER BY path").to_pylist()
        assert [row["outcome"] for row in files] == ["read"] * 4
        assert str(run / "nsys" / "rank1.sqlite") in {row["path"] for row in files}
        with pytest.raises(StoreError, match=r"written with schema .* nsightlens refresh --store"):
            opened.view("kernel_summary")
        for query in ("FROM kernels", "FROM busy_time()"):
            with pytest.raises(StoreError, match=r"written with schema .* nsightlens refresh --store"):
                opened.sql(query)
    done = CliRunner().invoke(ingest_command, [str(run), "--store", str(older)])
    assert isinstance(done.exception, StoreError) and "nsightlens refresh" in str(done.exception)


def test_an_older_schema_is_rebuilt_from_the_captures(older: Path, store: Path) -> None:
    done = _refreshed(older)
    assert done.exit_code == 0 and f"rebuilt from schema {SCHEMA_VERSION - 1}: 3 profiles read" in done.stderr
    assert _content(older) == _content(store)
    assert {entry.name for entry in older.iterdir()} - {"looks.msgpack"} == {"lock", "nsightlens.duckdb", "parts"}
    named = {path for paths in _parts(older).values() for path in paths}
    assert {str(part.relative_to(older)) for part in older.glob("parts/*/*/*.parquet")} == named


def test_what_cannot_be_read_again_stays_beside_a_rebuilt_store(older: Path, run: Path) -> None:
    (run / "nsys" / "rank1.sqlite").unlink()
    done = _refreshed(older)
    kept = older / f"nsightlens.schema-{SCHEMA_VERSION - 1}.duckdb"
    assert done.exit_code == 0 and "2 profiles read" in done.stderr and str(kept) in done.stderr
    assert f"1 capture gone, their rows are not in the rebuilt store: {run / 'nsys' / 'rank1.sqlite'}" in done.stderr
    with duckdb.connect(str(kept), read_only=True) as plain:
        assert plain.execute("SELECT count(DISTINCT profile_id) FROM kernels").fetchone() == (3,)
        parts = [path for (path,) in plain.execute("SELECT path FROM _parts").fetchall()]
    nl.ingest(run, store=older, jobs=1)
    assert all((older / part).is_file() for part in parts), "the next writer leaves them, too"


@pytest.mark.parametrize("fails", ["captures", "disk"])
def test_a_rebuild_that_fails_loses_nothing(fails: str, older: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.read_bytes() for path in older.rglob("*") if path.is_file() and path.name != "lock"}
    if fails == "captures":
        shutil.rmtree(run)
    else:
        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")
        monkeypatch.setattr(template, "place", full)
        (run / "nsys" / "rank1.sqlite").unlink()
    with pytest.raises(StoreError, match="stays as it is" if fails == "captures" else "as it was before"):
        refresh(older, jobs=1)
    with nl.open(older) as opened:
        assert opened.older_schema == SCHEMA_VERSION - 1
    assert {path: path.read_bytes() for path in before} == before
    assert not list(older.glob("nsightlens.schema-*"))


def test_a_store_of_a_newer_schema_is_left_alone(store: Path, tmp_path: Path) -> None:
    other = _older(tmp_path / "older")
    for arguments in (["show", "kernel_summary"], ["refresh"], ["ingest", RUN]):
        done = other.run(*arguments, "--store", store)
        assert done.returncode == 1 and "Update nsightlens" in done.stderr


def test_there_must_be_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store here"):
        refresh(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_warning_has_a_class_of_its_own(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _raise(monkeypatch, "attribution")
    with pytest.warns(OldRulesWarning, match="2 profiles are older"):
        nl.open(store).close()
