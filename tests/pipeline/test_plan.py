"""What an ingest reads again: a profile whose content or rules changed, by the signatures that the store has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nsightlens.discovery.files import CaptureFile
from nsightlens.discovery.profiles import Group
from nsightlens.discovery.sniff_cache import Fingerprint
from nsightlens.pipeline.plan import Plan
from nsightlens.store import rules
from nsightlens.store.writer import Known, StoreWriter


def _planned(folder: Path, contents: dict[str, str], known: Known) -> Plan:
    """Return the plan for one process whose windows are files of these contents."""
    files = [CaptureFile(folder / name, folder, "base", 1, 0, "json", "kineto", rank_hint=(0, "pattern")) for name in contents]
    prints = {file.path: Fingerprint(contents[file.path.name], (1, 0)) for file in files}
    plan = Plan(StoreWriter(folder / "store"), known, prints)
    plan.add(Group("base", "kineto", tuple((file,) for file in files)))
    return plan


@pytest.fixture
def known(tmp_path: Path) -> Known:
    """What the store has of two windows of a process."""
    contents = {"a.json": "first", "b.json": "second"}
    plan = _planned(tmp_path, contents, Known())
    (name,) = plan.waiting()
    rows: list[dict[str, Any]] = [
        {"run": "base", "path": str(tmp_path / file), "fingerprint": text, "profile_id": name, "outcome": "read"}
        for file, text in contents.items()]
    for file in contents:
        (tmp_path / file).touch()
    return Known(files=rows, signatures=plan.signatures)


@pytest.mark.parametrize("contents", [
    {"a.json": "first", "b.json": "changed"}, {"a.json": "changed", "b.json": "second"},
    {"b.json": "second", "a.json": "first"}, {"a.json": "first", "b.json": "second", "c.json": "third"}])
def test_a_process_one_of_whose_windows_changed_is_read_again(contents: dict[str, str], tmp_path: Path, known: Known) -> None:
    """Its other window is as it was, and names it."""
    assert _planned(tmp_path, contents, known).waiting() == list(known.signatures)


def test_what_is_as_it_was_is_not_read(tmp_path: Path, known: Known) -> None:
    plan = _planned(tmp_path, {"a.json": "first", "b.json": "second"}, known)
    assert (plan.waiting(), plan.matched) == ([], {})


@pytest.mark.parametrize(("raised", "is_read"), [("kineto", True), ("matching", False)])
def test_newer_rules_read_it_again_or_match_it_again(
    raised: str, is_read: bool, tmp_path: Path, known: Known, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(rules.VERSIONS, raised, rules.VERSIONS[raised] + 1)
    plan = _planned(tmp_path, {"a.json": "first", "b.json": "second"}, known)
    assert (plan.waiting() == list(known.signatures), plan.matched.keys() == known.signatures.keys()) == (is_read, not is_read)
