"""The house rules as tests: imports go one way, the core imports fast, nothing prints outside cli."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

from nsightlens.cli import COMMANDS
from tests.captures import kineto
from tests.places import ROOT

PACKAGE = ROOT / "nsightlens"

ROOMS = (
    "terminal", "errors", "public_calls", "schema", "names", "readers", "discovery", "columns", "intervals", "attribution",
    "matching", "op_cost", "statistics", "views", "diagnosis", "analyses", "store", "pipeline", "doctor", "recording", "gate",
    "plots", "perfetto", "html_report", "pages", "", "mcp", "cli", "__main__",
)
"""From left to right: a room imports only rooms to its left. "" is nsightlens/__init__.py."""


def _modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _imports(path: Path) -> set[str]:
    """Return the modules of ours that a module imports, wherever in it and also by a string: dotted, without `nsightlens.`."""
    found = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "nsightlens":
            found |= {_module(f"{node.module}.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {_module(alias.name) for alias in node.names if alias.name.split(".")[0] == "nsightlens"}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            found |= _imported_by_string(node)
    return found


def _imported_by_string(call: ast.Call) -> set[str]:
    """Return what `import_module("nsightlens.x")` imports; of an f-string, the package that its constant beginning names."""
    text = call.args[0]
    if isinstance(text, ast.JoinedStr):
        text = text.values[0]
    assert isinstance(text, ast.Constant), f"line {call.lineno}: an import that no test can follow"
    dotted = str(text.value).rstrip(".")
    return {_module(dotted)} if dotted.split(".")[0] == "nsightlens" else set()


def _module(dotted: str) -> str:
    """Return the module that a dotted name lies in (its own, or that which defines it), without `nsightlens.`."""
    parts = dotted.split(".")[1:]
    while parts and not (PACKAGE.joinpath(*parts).is_dir() or PACKAGE.joinpath(*parts).with_suffix(".py").is_file()):
        parts.pop()
    return ".".join(parts)


def _name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def _place(module: str) -> int:
    room = module.split(".")[0]
    assert room in ROOMS, f"the room {room!r} has no place in ROOMS (tests/test_architecture.py)"
    return ROOMS.index(room)


def test_a_room_imports_only_to_its_left() -> None:
    for path in _modules():
        here = _name(path)
        later = {other for other in _imports(path) if other.split(".")[0] != here.split(".")[0] and _place(other) >= _place(here)}
        assert not later, (
            f"nsightlens/{path.relative_to(PACKAGE)} imports {later}, to its right in ROOMS (tests/test_architecture.py): "
            "pass the value in as an argument, or move the function to the room that both may import")


def test_every_room_exists() -> None:
    there = {_name(path).split(".")[0] for path in _modules()}
    assert set(ROOMS) == there, (
        f"rooms without a place: {there - set(ROOMS)}, places without a room: {set(ROOMS) - there}. Change ROOMS in "
        "tests/test_architecture.py, and the picture in CONTRIBUTING.md")


def test_nothing_else_lies_at_the_top() -> None:
    lying = {entry.name for entry in PACKAGE.iterdir() if entry.is_file()}
    expected = {"__init__.py", "__main__.py", "errors.py", "public_calls.py", "schema.py", "gpus.csv", "py.typed"}
    assert lying == expected, f"at the top of nsightlens/: move {lying - expected} into a room; missing: {expected - lying}"


def test_no_module_has_the_name_of_a_public_function() -> None:
    import nsightlens

    shared = {entry.stem for entry in PACKAGE.iterdir()} & (set(nsightlens.__all__) - {"plots", "recording"})
    assert not shared, f"rename nsightlens/{shared}: once imported, the module would hide the function nsightlens.{shared}"


def test_no_circle_of_imports_in_a_room() -> None:
    graph = {_name(path): {other for other in _imports(path) if other.split(".")[0] == _name(path).split(".")[0]} - {_name(path)}
             for path in _modules() if _room(path)}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as exc:
        circle = " -> ".join(f"nsightlens.{module}" for module in exc.args[1])
        raise AssertionError(f"a circle of imports: {circle}. Move what two of them need into a module of its own") from exc


def _picture() -> tuple[set[str], set[tuple[str, str]]]:
    """Return the nodes and the arrows of the picture in CONTRIBUTING.md."""
    block = re.search(r"```mermaid\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block
    drawn = [re.sub(r'\[\(.*?\)\]|\(\(.*?\)\)|-- ".*?" (?=-->)', "", line).strip() for line in block[1].splitlines()]
    lines = [line for line in drawn if not line.startswith(("flowchart", "subgraph", "end"))]
    ends = [tuple(end.strip() for end in line.split("-->")) for line in lines]
    return {end for pair in ends for end in pair}, {(pair[0], pair[1]) for pair in ends if len(pair) == 2}


def test_the_picture_shows_every_room() -> None:
    nodes, arrows = _picture()
    rooms = set(ROOMS) - {"", "__main__"}
    shown = nodes - {"captures", "people"}
    assert shown == rooms, f"the picture in CONTRIBUTING.md: draw {rooms - shown}, take out {shown - rooms}"
    alone = rooms - {end for arrow in arrows for end in arrow} - {"terminal", "errors", "public_calls", "schema"}
    assert not alone, f"the picture in CONTRIBUTING.md: no arrow leads to or from {alone}"


def test_arrows_of_the_picture_join_rooms_that_know_each_other() -> None:
    imports = {(_room(path), other.split(".")[0]) for path in _modules() for other in _imports(path)}
    _, arrows = _picture()
    between = {arrow for arrow in arrows if set(arrow) <= set(ROOMS)}
    wrong = {(a, b) for a, b in between if not {(a, b), (b, a)} & imports}
    assert len(between) > 15 and not wrong, f"the picture in CONTRIBUTING.md: neither of {wrong} imports the other"


def test_the_table_of_rooms_is_whole() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| room |")[2].partition("\n\n")[0]
    named = {name for line in text.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    missing = set(ROOMS) - {"", "__main__"} - named
    assert not missing, f"CONTRIBUTING.md: say what may change in {missing}"


PRINTS = {"print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write", "traceback.print_exception"}


def test_one_function_prints() -> None:
    for path in set(_modules()) - {PACKAGE / "terminal" / "output.py"}:
        body = [n for n in _tree(path).body if not _is_main_guard(n)]
        calls = [n for top in body for n in ast.walk(top) if isinstance(n, ast.Call)]
        lines = [c.lineno for c in calls if _is_print(c)]
        assert not lines, (
            f"{path.relative_to(ROOT)}, lines {lines}: a name could steer the terminal. In nsightlens/cli print with "
            "terminal.output.echo; elsewhere return the text, or raise an error")
        echoes = _room(path) not in ("cli", "pages") and "terminal.output" in _imports(path)
        assert not echoes, f"{path.relative_to(ROOT)}: only cli, and pages for it, print; return the text, or raise an error"


def _is_print(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    return name in PRINTS or (name == "exc.show" and not call.args and not call.keywords)


HAND_MADE = re.compile(
    rf"(?:\b(?:nsightlens (?:{'|'.join(COMMANDS)})|unxz|unzip|unzstd|bunzip2|gunzip|tar|mkdir|traceconv|nsys export"
    r"|pip install|python -c)\b"
    r"(?: [\w.=/-]+)*|(?<![\w-])--(?:run|store))[ =]['\"]?$")
"""The end of a text that begins a command of ours or of others, or an option with a name."""


QUOTES = {"shlex.quote", "shlex.join"}


def test_one_place_makes_commands() -> None:
    for path in (path for path in _modules() if path.parent != PACKAGE / "terminal"):
        nodes = list(ast.walk(_tree(path)))
        quotes = [n.lineno for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n) in QUOTES]
        by_hand = [text.lineno for text in nodes if isinstance(text, ast.JoinedStr)
                   for part, value in pairwise(text.values)
                   if isinstance(part, ast.Constant) and HAND_MADE.search(str(part.value))
                   and isinstance(value, ast.FormattedValue) and not _is_command(value.value)]
        assert not quotes + by_hand, (
            f"{path.relative_to(ROOT)}, lines {sorted(quotes + by_hand)}: make a command that is shown with "
            "terminal.command.Command, terminal.quoting.shell_line or quoted: names in it may hold anything")


def _is_command(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and re.search(r"\b(quoted|shell|shell_line)\b", ast.unparse(value)) is not None


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


HEAVY = {"torch", "pandas", "scipy", "matplotlib", "pyarrow", "duckdb", "numpy", "rich"}


def _light(code: str, heavy: set[str]) -> None:
    found = _loaded_by(code) & heavy
    assert not found, f"{code!r} loads {found}: import it in the function that needs it; python -X importtime shows where"


def _loaded_by(code: str) -> set[str]:
    program = f"{code}\nimport sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {".".join(words[:depth]) for words in (line.split(".") for line in done.stdout.splitlines()) for depth in (1, 2, 3)}


def test_import_loads_nothing_heavy() -> None:
    _light("import nsightlens", HEAVY)


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; sys.argv = ['nsightlens', '--help']\nfrom nsightlens.cli import main\ntry: main()\n"
    code += "except SystemExit: pass"
    _light(code, HEAVY)


def test_ingest_and_show_need_no_pandas(tmp_path: Path) -> None:
    run, store = kineto(tmp_path / "run" / "a.json").parent, tmp_path / "store"
    for arguments in (["ingest", str(run)], ["show", "kernel_summary"]):
        code = f"import sys; sys.argv = ['nsightlens', *{arguments}, '--store', {str(store)!r}]\n"
        _light(code + "from nsightlens.cli import main\nmain()\n", {"torch", "pandas", "matplotlib"})


def test_a_question_to_a_store_loads_nothing_that_reads_captures(bundled_store: Path) -> None:
    code = f"import nsightlens\nwith nsightlens.open({str(bundled_store)!r}) as store: store.sql('SELECT 1')"
    _light(code, {"torch", "matplotlib", "rich", "nsightlens.readers.formats", "nsightlens.attribution", "nsightlens.matching",
                  "nsightlens.names.kernel_names", "nsightlens.pipeline", "nsightlens.store.swept", "pyarrow.compute",
                  "pyarrow.parquet", "multiprocessing"})



def test_pyarrow_still_finds_pandas_when_asked() -> None:
    code = "import sys\nfrom nsightlens.pipeline.memory import spare_pandas\nspare_pandas()\nimport pyarrow as pa\n"
    code += "assert 'pandas' not in sys.modules\nassert pa.table({'a': [1]}).to_pandas()['a'].sum() == 1"
    assert "pandas" in _loaded_by(code)
