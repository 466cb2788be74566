"""A job whose ranks come one by one, from one folder or another, is the store of all at once, answers included."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

import nsightlens as nl
from benchmarks import job_input
from nsightlens.schema import TABLES
from nsightlens.store import answers
from nsightlens.store.store import CATALOG

RUN = "job"


def _rows(store: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of all tables and answers, sorted; without where a file lies, and how long an answer took.

    Of the places in an answer their order in a profile counts; private answers are in none.
    """
    with duckdb.connect(store / CATALOG, read_only=True) as connection:
        names = [name for (name,) in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, '_answer_')").fetchall()]
        columns = {"files": "* EXCLUDE (path)", "diagnostics": "* EXCLUDE (path)", "_answers": "* EXCLUDE (seconds)"}
        placed = "* REPLACE (row_number() OVER (PARTITION BY profile_id ORDER BY _place) AS _place)"
        columns |= {name: "* EXCLUDE (_place)" if name.startswith("_answer__") else placed for name in names}
        return {name: sorted(connection.execute(f"SELECT {columns.get(name, '*')} FROM {name}").fetchall(), key=repr)
                for name in [*TABLES, "_answers", *names]}


def test_rank_by_rank_is_all_at_once(tmp_path: Path) -> None:
    job_input.write(tmp_path / "made", job_input.job(32, 2))
    (tmp_path / "made" / "truth.json").unlink()
    captures = sorted(tmp_path.glob("made/*.json"))[:11]
    for folder, some in (("here", captures[:9]), ("late", captures[10:]), ("all", captures)):
        (tmp_path / folder).mkdir()
        for capture in some:
            shutil.copy2(capture, tmp_path / folder)
    one_by_one, at_once = tmp_path / "one_by_one", tmp_path / "at_once"
    nl.ingest(tmp_path / "here", store=one_by_one, run=RUN, answers=True, jobs=1).close()
    shutil.copy2(captures[9], tmp_path / "here")
    for folder in ("here", "late"):
        nl.ingest(tmp_path / folder, store=one_by_one, run=RUN, answers=True, jobs=1).close()
    nl.ingest(tmp_path / "all", store=at_once, run=RUN, answers=True, jobs=1).close()
    found, expected = _rows(one_by_one), _rows(at_once)
    assert found.keys() == expected.keys()
    assert len(expected["profiles"]) == len(captures)
    assert expected["_answer__gpu_states"]
    for name, rows in expected.items():
        assert found[name] == rows, name


def test_profiles_that_share_parts_are_answered_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch may hold a part only of the profiles whose rows lie together."""
    job_input.write(tmp_path / "made", job_input.job(32, 2))
    (tmp_path / "made" / "truth.json").unlink()
    for capture in sorted(tmp_path.glob("made/*.json"))[11:]:  # so that the last batch is of one
        capture.unlink()
    nl.ingest(tmp_path / "made", store=tmp_path / "together", run=RUN, answers=True, jobs=1).close()
    monkeypatch.setattr(answers, "WORTH_IT", 60)
    nl.ingest(tmp_path / "made", store=tmp_path / "apart", run=RUN, answers=True, jobs=1).close()
    found, expected = _rows(tmp_path / "apart"), _rows(tmp_path / "together")
    assert found.keys() == expected.keys()
    for name, rows in expected.items():
        assert found[name] == rows, name
