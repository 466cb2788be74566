"""Captures that grow or are swapped while an ingest reads them: no mixture of two states is ever stored."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import ReadError
from nsightlens.pipeline import ingest as pipeline
from nsightlens.pipeline import plan
from tests.places import ROOT

FIXTURES = ROOT / "fixtures" / "simulated_resnet18_ddp"
NAMES = ("rank0.sqlite", "rank0.json.gz", "page.csv")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a capture of each kind, of rank 0; and those of rank 1 under the folder `other`."""
    here, other = tmp_path / "run", tmp_path / "other"
    for folder, rank in ((here, 0), (other, 1)):
        folder.mkdir()
        shutil.copy(next(FIXTURES.rglob(f"rank{rank}.sqlite")), folder / NAMES[0])
        shutil.copy(sorted(FIXTURES.rglob("*.json.gz"))[rank], folder / NAMES[1])
        shutil.copy(sorted(FIXTURES.rglob("*.csv"))[0], folder / NAMES[2])
    (other / NAMES[2]).write_bytes((here / NAMES[2]).read_bytes().replace(b"1", b"2"))
    return here


def _grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def _swapped(path: Path) -> None:
    """Put another capture in its place, with the same times."""
    new, before = path.with_name(f".{path.name}"), path.stat()
    shutil.copy(path.parent.parent / "other" / path.name, new)
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.replace(path)


def _swapped_in_place(path: Path) -> None:
    before = path.stat()
    path.write_bytes(bytes(reversed(path.read_bytes())))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(("name", "change", "when"), [
    (NAMES[0], _grown, "after"), (NAMES[0], _swapped, "before"),
    (NAMES[1], _swapped, "after"), (NAMES[2], _swapped_in_place, "before"),
])
def test_a_capture_that_changes_is_refused_and_read_by_the_next_ingest(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Path], None], when: str,
) -> None:
    real = plan.read_profile

    def read(task: plan.Task, jobs: int) -> dict[str, int]:
        is_it = task.profile.windows[0][0].name == name
        if is_it and when == "before":
            change(run / name)
        try:
            return real(task, jobs)
        finally:
            if is_it and when == "after":
                change(run / name)

    monkeypatch.setattr(plan, "read_profile", read)
    report = pipeline.ingest([run], tmp_path / "store", jobs=1, answers=False)
    assert [(Path(error.path).name, error.code) for error in report.refused] == [(name, "changed_while_read")]
    with nl.open(tmp_path / "store") as store:
        assert store.sql("FROM files WHERE outcome = 'refused'").num_rows == 1
        assert store.sql("FROM profiles").num_rows == 2
    monkeypatch.undo()
    if change is not _swapped_in_place:
        again = pipeline.ingest([run], tmp_path / "store", jobs=1, answers=False)
        assert not again.refused and len([one for one in again.outcomes if one.state == "new"]) == 1


def test_what_was_read_of_it_before_stays(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    pipeline.ingest([run], store, jobs=1, answers=False)
    _swapped(run / NAMES[0])
    real = plan.read_profile

    def read(task: plan.Task, jobs: int) -> dict[str, int]:
        _grown(run / NAMES[0])
        return real(task, jobs)

    with nl.open(store) as opened:
        before = opened.sql("SELECT count(*), sum(duration_ns) FROM kernels").to_pylist()
    monkeypatch.setattr(plan, "read_profile", read)
    assert [error.code for error in pipeline.ingest([run], store, jobs=1, answers=False).refused] == ["changed_while_read"]
    with nl.open(store) as opened:
        assert opened.sql("SELECT count(*), sum(duration_ns) FROM kernels").to_pylist() == before


def test_one_file_that_changes_while_it_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = plan.read_profile

    def read(task: plan.Task, jobs: int) -> dict[str, int]:
        rows = real(task, jobs)
        _swapped(run / NAMES[1])
        return rows

    monkeypatch.setattr(pipeline, "read_profile", read)
    with pytest.raises(ReadError) as refused:
        nl.read(run / NAMES[1])
    assert refused.value.code == "changed_while_read"
