"""Nothing of a hostile store is run: no command reads or writes beside it, and each says why, or answers as an honest store."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nsightlens.cli import root
from nsightlens.errors import NsightlensError
from tests.conftest import Shared
from tests.store.hostile_catalogs import CANARY, CATALOG, HOSTILE, OF_PARTS, honest, make

NAMES = [*HOSTILE, *OF_PARTS]
ROWS = {
    "files": ["sql", "SELECT run, path, outcome FROM files", "--format", "csv"],
    "nothing": ["sql", "SELECT 1", "--format", "csv"],
    "kernels": ["show", "kernel_summary", "--format", "csv"],
    "gemm": ["sql", "SELECT sum(duration_ns), lower(any_value(name)) || 'x' FROM kernels", "--format", "csv"],
}
"""Commands whose output is that of the honest store, or there is none."""
READERS = {
    "tables": ["sql", "SHOW TABLES"], "strange": ["sql", "FROM mine"],
    "summary": ["summary"], "busy": ["show", "busy_time"], "views": ["views", "kernel_summary"],
    "headroom": ["show", "headroom"],
    "ranks": ["compare", "ranks"], "open": ["open"],
    "roofline": ["roofline"],
    "plan": ["plan-ncu"],
    "plot": ["plot", "step_breakdown", "--output", "{out}/a.png"], "report": ["report", "--output", "{out}/report.html"],
    "perfetto": ["export", "perfetto", "--output", "{out}/trace.json.gz"],
    "files_too": ["sql", "SELECT count(*) FROM kernel_summary", "--allow-files"],
}
WRITERS = {
    "compact": ["compact"], "refresh": ["refresh", "--jobs", "1"], "remove": ["remove", "--run", "run", "--yes"],
    "ingest": ["ingest", "{more}", "--jobs", "1"],
}
WITH_ARGUMENT = ("open",)
OTHER_FILES = ("a run leads out",)
"""Here the rows of `files` are other texts than in the honest store, and no more than texts."""
EMPTY = {"a profile's id leads out": ("perfetto",)}
"""Commands that find nothing to draw: no kernel belongs to the profile by that name."""
QUICK = dict(zip(NAMES, cycle([*ROWS, *WRITERS, "tables", "strange", "plan", "busy", "files_too"]), strict=False))


@pytest.fixture(scope="session")
def stores(shared: Shared) -> Path:
    return shared("honest", honest)


@pytest.fixture
def world(tmp_path: Path, cache: Path) -> Iterator[Path]:
    """A folder for a store and what lies beside it: it goes at once, as there are many."""
    yield tmp_path / "world"
    shutil.rmtree(tmp_path, ignore_errors=True)


def contents(folder: Path) -> dict[str, bytes | str]:
    """Return what lies in a folder: links as what they say, files as what they hold."""
    return {str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_symlink() or path.is_file()}


def outside(world: Path) -> dict[str, bytes | str]:
    return {name: content for name, content in contents(world).items() if not name.startswith("store/")}


def run(command: list[str], store: Path, stores: Path, out: Path) -> Result:
    out.mkdir(exist_ok=True)
    given = [word.format(out=out, more=stores / "run") for word in command]
    place = [str(store)] if command[0] in WITH_ARGUMENT else ["--store", str(store)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CliRunner().invoke(root, [*given, *([] if command[0] == "views" else place)], standalone_mode=False)


@cache
def of_honest(key: str, store: Path) -> str:
    """Return what a command of ROWS prints of an honest store."""
    return run(ROWS[key], store, store.parent, store.with_name("out")).output


def check(name: str, commands: dict[str, list[str]], stores: Path, world: Path) -> None:
    store = make(name, stores, world)
    before, inside = outside(world), contents(store)
    base = stores / ("whole" if name in HOSTILE else "parts")
    for key, command in commands.items():
        done = run(command, store, stores, world.with_name("out"))
        said = f"{name}: {command}: {done.output} {done.exception!r}"
        error = done.exception
        assert CANARY not in done.output + str(error), said
        assert outside(world) == before, said
        if key in WRITERS:
            shutil.rmtree(world)
            make(name, stores, world)
        else:
            assert contents(store) == inside, said
        if isinstance(error, SystemExit):
            assert error.code in (0, 1), said
        elif error is not None:
            assert isinstance(error, NsightlensError), said
            assert error.exit_code == 1 or key in ("strange", *EMPTY.get(name, ())), said
        elif key in ROWS and not (key == "files" and name in OTHER_FILES):
            assert done.output == of_honest(key, base), said


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_read_or_written_beside_a_hostile_store(name: str, stores: Path, world: Path) -> None:
    check(name, {QUICK[name]: (ROWS | READERS | WRITERS)[QUICK[name]]}, stores, world)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_no_command_at_all_does(name: str, stores: Path, world: Path) -> None:
    check(name, ROWS | READERS | WRITERS, stores, world)


def test_there_are_sixty_and_each_is_another(stores: Path, tmp_path: Path) -> None:
    assert len(NAMES) >= 60
    assert all((make(name, stores, tmp_path / str(number)) / CATALOG).exists() for number, name in enumerate(NAMES[:3]))
