"""Which versions of the export's schema are known, and what is said of a newer one."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from nsightlens.readers import nsys
from nsightlens.readers.nsys.versions import TESTED, untested
from tests.cli.command_line import run
from tests.places import ROOT, sqlite_captures
from tests.readers.nsys_report import base, codes, read, write, write_parquetdir


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_the_versions_ascend_and_stand_in_the_docs() -> None:
    assert list(TESTED) == sorted(TESTED, key=numbers)
    assert all(untested(version) is None for version in TESTED)
    docs = " ".join((ROOT / "docs/formats.md").read_text().split())
    assert f"{', '.join(TESTED[:-1])} and {TESTED[-1]}" in docs


@pytest.mark.parametrize(("version", "said"), [
    (None, False),
    ("3.10.0", False),
    ("3.25.99", False),
    ("3.26.0", True),
    ("3.28.1", True),
    ("4.0.0", True),
    ("4.0", True),
    ("2.99.0", False),
    ("newest", True),
    ("3", True),
    ("", False),
    ("9" * 5000 + ".1", True),
])
def test_a_newer_schema_is_read_and_said_to_be_untested(tmp_path: Path, version: str | None, said: bool) -> None:
    row = {"name": "EXPORT_SCHEMA_VERSION", "value": version}
    path = write(tmp_path / "report.sqlite", base(META_DATA_EXPORT=[row]))
    write_parquetdir(tmp_path / "directory", path)
    for source in (path, tmp_path / "directory"):
        found = read(source)
        assert len(found["kernels"]) == len(found["api_calls"]) == 1
        assert ("untested_schema" in codes(found)) == said
        note = nsys.probe(source).note
        assert (note is not None) == said
        (text,) = [row["message"] for row in found["diagnostics"] if row["code"] == "untested_schema"] or [None]
        assert text is None if note is None else text is not None and note in text and len(text) < 400


def test_scan_says_it(tmp_path: Path) -> None:
    for name, version in (("old", TESTED[0]), ("new", "3.28.1")):
        write(tmp_path / f"{name}.sqlite", base(META_DATA_EXPORT=[{"name": "EXPORT_SCHEMA_VERSION", "value": version}]))
    rows = {row["path"]: row for row in json.loads(run("scan", tmp_path, "-f", "json").stdout)["rows"]}
    assert rows["new.sqlite"]["verdict"] == rows["old.sqlite"]["verdict"] == "read"
    assert "its schema 3.28.1 is newer than what was tested" in rows["new.sqlite"]["problem"]
    assert rows["old.sqlite"]["problem"] is None


@pytest.mark.captures
@pytest.mark.parametrize("path", sqlite_captures(), ids=[path.stem for path in sqlite_captures()])
def test_the_schema_of_every_capture_is_known(path: Path) -> None:
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        for table in tables & {"META_DATA_EXPORT", "EXPORT_META_DATA"}:
            query = f"SELECT value FROM {table} WHERE name = 'EXPORT_SCHEMA_VERSION'"
            assert {version for (version,) in database.execute(query)} <= set(TESTED)
