"""The house rules as tests: imports go one way, the core imports fast, nothing prints outside cli."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.captures import kineto

PACKAGE = Path(__file__).resolve().parents[1] / "nsightlens"

# A room imports only from rooms of a smaller number.
ROOMS = {
    "errors": 0, "schema": 1, "workers": 1, "reconcile": 1, "significance": 1, "alignment": 1,
    "collectives": 2, "matching": 2, "operators": 2, "names": 2, "ranks": 2, "readers": 2, "vendor": 2,
    "placement": 2, "recordings": 3, "measured": 4, "crossing": 5,
    "discover": 3, "processes": 3, "staging": 3, "shelf": 3, "nesting": 3, "autograd": 4, "grouping": 4, "kinds": 4,
    "normalise": 4, "linking": 5,
    "surroundings": 5, "origins": 6, "attribution": 7, "assembly": 8, "parts": 9, "views": 6, "star": 6, "analyses": 7,
    "conflicts": 6, "catalogue": 7, "blank": 8, "store": 9, "road": 10, "plots": 11, "perfetto": 11, "report": 11, "doctor": 11,
    "": 12, "cli": 13, "__main__": 14,
}


def _modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def _imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "nsightlens":
            rest = node.module.split(".")[1:]
            rooms |= {rest[0]} if rest else {alias.name if alias.name in ROOMS else "" for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "nsightlens":
                    rooms.add([*alias.name.split("."), ""][1])
    return rooms


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_imports_only_to_its_left(path: Path) -> None:
    room = _room(path)
    assert room in ROOMS, f"the new room {room} needs a place in ROOMS"
    later = {r for r in _imported_rooms(path) if r != room and ROOMS.get(r, 99) >= ROOMS[room]}
    assert not later, f"{room} imports {later}"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_command_line_prints(path: Path) -> None:
    if _room(path) in ("cli", "__main__"):
        return
    body = [n for n in ast.parse(path.read_text()).body if not _is_main_guard(n)]
    calls = [n for top in body for n in ast.walk(top) if isinstance(n, ast.Call)]
    assert not [c.lineno for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


def _loaded_by(code: str) -> set[str]:
    program = f"{code}\nimport sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {line.split(".")[0] for line in done.stdout.splitlines()}


def test_import_loads_nothing_heavy() -> None:
    assert not _loaded_by("import nsightlens") & {"torch", "pandas", "matplotlib", "pyarrow", "duckdb", "numpy"}


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; sys.argv = ['nsightlens', '--help']\nfrom nsightlens.cli import main\ntry: main()\n"
    code += "except SystemExit: pass"
    assert not _loaded_by(code) & {"torch", "pandas", "matplotlib", "pyarrow", "duckdb", "numpy", "rich"}


def test_ingest_and_show_need_no_pandas(tmp_path: Path) -> None:
    run, store = kineto(tmp_path / "run" / "a.json").parent, tmp_path / "store"
    for arguments in (["ingest", str(run)], ["show", "kernel_summary"]):
        code = f"import sys; sys.argv = ['nsightlens', *{arguments}, '--store', {str(store)!r}]\n"
        assert not _loaded_by(code + "from nsightlens.cli import main\nmain()\n") & {"torch", "pandas", "matplotlib"}


def test_pyarrow_still_finds_pandas_when_asked() -> None:
    code = "import sys\nfrom nsightlens.workers import spare_pandas\nspare_pandas()\nimport pyarrow as pa\n"
    code += "assert 'pandas' not in sys.modules\nassert pa.table({'a': [1]}).to_pandas()['a'].sum() == 1"
    assert "pandas" in _loaded_by(code)
