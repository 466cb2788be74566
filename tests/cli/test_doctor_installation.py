"""What nsightlens doctor says of the installation, on metadata and environments of its own."""

from __future__ import annotations

import re
from importlib import util
from pathlib import Path

import pytest

from nsightlens.doctor import installation
from nsightlens.doctor.fitness import BAD, GOOD, NOTE
from tests.lower_bounds import PROJECT

REQUIRES = ['duckdb>=2.0', 'pyarrow>=18', 'mpi4py>=4.0; extra == "mpi"', 's3fs>=2025.2; extra == "remote"',
            'nsightlens[mpi]; extra == "dev"', 'pytest>=8; extra == "test"']


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The versions of all packages that are installed."""
    there = {"duckdb": "2.0.1", "pyarrow": "18.0.0rc1", "mpi4py": "4.1"}
    monkeypatch.setattr(installation, "_version", there.get)
    return there


def test_extras_are_those_of_the_project() -> None:
    for_authors = {"workloads", "test", "engines", "mutants", "browser", "bench", "docs", "dev"}
    assert set(installation.EXTRAS) == set(PROJECT["optional-dependencies"]) - for_authors


def test_all_is_there(versions: dict[str, str]) -> None:
    found = list(installation.package_findings(REQUIRES))
    assert [(f.subject, f.state) for f in found] == [("packages", GOOD), ("extra remote", NOTE), ("extra mpi", GOOD)]
    assert found[0].found == "duckdb 2.0.1, pyarrow 18.0.0rc1"
    assert found[1].found.startswith("s3fs is not installed. It is for captures") and not found[0].fix
    assert found[2].found == f"mpi4py 4.1, for {installation.EXTRAS['mpi']}"
    assert found[1].fix == "pip install 'nsightlens[remote]'"


def test_a_package_is_missing_and_another_too_old(versions: dict[str, str]) -> None:
    versions["duckdb"] = "1.9.9"
    del versions["pyarrow"]
    found = next(installation.package_findings(REQUIRES))
    assert (found.state, found.found) == (BAD, "duckdb 1.9.9 is older than 2.0; pyarrow is not installed")


def test_python_is_too_old() -> None:
    assert installation.python_finding(">=3.11", (3, 10, 9)).state == BAD
    assert installation.python_finding(">=3.11", (3, 11, 0)).state == GOOD


def test_a_package_that_does_not_import_is_named() -> None:
    found = installation.import_finding(["json", "no_such_module", "csv"])
    assert found.state == BAD and found.found.startswith("no_such_module cannot be imported: ModuleNotFoundError")
    assert found.fix == "pip install --force-reinstall no-such-module"
    assert installation.import_finding(["json", "csv"]).state == GOOD


def test_the_cache(tmp_path: Path) -> None:
    assert installation.cache_finding(None).state == NOTE
    assert installation.cache_finding(tmp_path / "not" / "yet").state == GOOD
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    closed = installation.cache_finding(tmp_path / "file" / "cache")
    assert closed.state == NOTE and "cannot be written" in closed.found and "XDG_CACHE_HOME" in closed.fix


@pytest.mark.parametrize(("encoding", "state"), [("utf-8", GOOD), ("UTF8", GOOD), ("ascii", NOTE), ("cp1252", NOTE)])
def test_the_terminal(monkeypatch: pytest.MonkeyPatch, encoding: str, state: str) -> None:
    monkeypatch.setattr("sys.stdout", type("Stream", (), {"encoding": encoding, "fileno": lambda self: 1})())
    monkeypatch.delenv("TERM", raising=False)
    found = installation.terminal_finding(99)
    assert (found.state, bool(re.search(r"99 columns, TERM not set", found.found))) == (state, True)


def test_a_system_without_file_locks_says_what_it_can(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find = util.find_spec
    monkeypatch.setattr(installation, "find_spec", lambda name: None if name == "fcntl" else find(name))
    found = {f.subject: f for f in installation.examine_installation(tmp_path, 80)}
    assert found["file locks"].state == NOTE and "read here, not written" in found["file locks"].found
    monkeypatch.setattr(installation, "find_spec", find)
    assert "file locks" not in {f.subject for f in installation.examine_installation(tmp_path, 80)}


def test_a_checkout_that_is_not_installed(tmp_path: Path) -> None:
    first = next(installation.examine_installation(tmp_path, 80, "no such distribution"))
    assert (first.state, first.fix) == (NOTE, "In the checkout: pip install .")
    assert all(f.fix for f in installation.examine_installation(None, 80, "no such distribution") if f.state != GOOD)
