"""A user's own views from a folder: asked like ours, and wrong ones named with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import UsageError, ViewError
from nsightlens.views import folder
from tests.captures import kineto
from tests.places import ROOT

BUSIEST = """-- Kernels that take long. More of it.
-- @scope run
-- @requires _listed
-- @param  at_least_ns  Shortest total.
-- @column tool      Tool.
-- @column rank      Rank.
-- @column total_ns  Sum.
CREATE MACRO busiest(at_least_ns := 0) AS TABLE
SELECT tool, rank, total_ns FROM _listed
WHERE total_ns >= at_least_ns
ORDER BY ALL;
"""
LISTED = """-- What others build on.
-- @scope run
-- @requires kernel_by_rank
-- @column tool      Tool.
-- @column rank      Rank.
-- @column total_ns  Sum.
CREATE VIEW _listed AS SELECT tool, rank, total_ns FROM kernel_by_rank;
"""
RANKS = '''"""How many ranks there are.
@scope run
@requires busiest
@param  least  Ranks below this do not count.
@column ranks  Ranks.
"""
import pyarrow as pa


def analyse(ask, *, least=0):
    found = ask("SELECT DISTINCT rank FROM busiest() WHERE rank >= ?", [least])
    return pa.table({"ranks": [found.num_rows]})
'''


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    for rank in range(2):
        kineto(path / "run" / f"rank{rank}.json", [("gemm_kernel", 10.0, 5.0 + rank)], rank=rank, pid=rank + 1)
    nl.ingest(path / "run", store=path / "store", jobs=1)
    return path / "store"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    files = {"busiest.sql": BUSIEST, "_listed.sql": LISTED, "ranks.py": RANKS, "_shared.py": "nothing = 1", "a.txt": "x"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_they_are_asked_like_ours(store: Path, own: Path) -> None:
    with nl.open(store, views=own) as opened:
        assert opened.view("busiest", at_least_ns="5500").to_pylist() == [{"tool": "kineto", "rank": 1, "total_ns": 6000}]
        assert opened.view("busiest", only_rank=[0]).column("total_ns").to_pylist() == [5000]
        assert opened.view("ranks").to_pylist() == [{"ranks": 2}]
        assert opened.view("ranks", least=1, only_ranks="1").to_pylist() == [{"ranks": 1}]
        assert opened.sql("SELECT count(*) AS n FROM busiest()").to_pylist() == [{"n": 2}]
        assert opened.views["busiest"].summary == "Kernels that take long." and "_listed" not in opened.views
        assert list(opened.views) == sorted(opened.views) and "kernel_summary" in opened.views
        with pytest.raises(UsageError, match="did you mean at_least_ns"):
            opened.view("busiest", at_leat_ns=1)
        opened.allow_files()
        assert opened.view("busiest").num_rows == 2


def test_the_page_holds(store: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").partition("\n## Your own views\n")[2]
    for name, language in (("long_gemms.sql", "sql"), ("gemm_ranks.py", "python")):
        assert f"`my_views/{name}`" in page
        (tmp_path / name).write_text(page.partition(f"```{language}\n")[2].partition("```")[0])
    with nl.open(store, views=tmp_path) as opened:
        assert opened.view("long_gemms", at_least_ns=5500)["rank"].to_pylist() == [1]
        assert opened.view("gemm_ranks", at_least_ns=0).to_pylist() == [{"ranks": 2}]


def test_they_stay_out_of_the_store(store: Path, own: Path) -> None:
    before = (store / "nsightlens.duckdb").read_bytes()
    with nl.open(store, views=own) as opened:
        opened.view("ranks")
    assert (store / "nsightlens.duckdb").read_bytes() == before
    with nl.open(store) as opened, pytest.raises(UsageError, match="no view busiest"):
        opened.view("busiest")


def test_the_environment_names_the_folder(store: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSIGHTLENS_VIEWS", str(own))
    with nl.open(store) as opened:
        assert opened.view("ranks").num_rows == 1
    monkeypatch.setenv("NSIGHTLENS_VIEWS", str(own / "none such"))
    with pytest.raises(UsageError, match="none such: no such folder"):
        nl.open(store)


@pytest.mark.parametrize(("before", "after", "line", "what"), [
    ("FROM _listed\n", "FROM _lsted\n", 9, "_lsted does not exist"),
    ("WHERE total_ns >=", "WHERE total >=", 10, "total"),
    ("WHERE total_ns >= at_least_ns", "WHER total_ns", 10, "syntax error"),
    ("-- @column rank      Rank.\n", "", 7, "its columns are tool, rank, total_ns; its @column lines name tool, total_ns"),
    ("@scope run", "@scope everything", 2, "@scope is profile, run or rows"),
    ("-- @scope run\n", "", 1, "no @scope"),
    ("@requires _listed", "@requires _lsted", 3, "requires _lsted, which is neither"),
    ("-- @param  at_least_ns  Shortest total.\n", "", 7, "@param lines and the parameters differ"),
    (":= 0)", ":= now)", 8, "'now' is no literal"),
    ("@column tool      Tool.", "@colum tool Tool.", 5, "unknown tag @colum"),
    ("MACRO busiest", "MACRO busy", 8, "name the file busy.sql"),
    ("CREATE MACRO", "SELECT 1; --", 1, "no CREATE VIEW"),
    ("ORDER BY ALL;", "ORDER BY ALL; SELECT 1;", 8, "one statement"),
    ("-- Kernels that take long. More of it.\n", "", 1, "no documentation"),
])
def test_what_is_wrong_is_named_with_file_and_line(store: Path, own: Path, before: str, after: str, line: int, what: str) -> None:
    path = own / "busiest.sql"
    assert before in BUSIEST
    path.write_text(BUSIEST.replace(before, after))
    with pytest.raises(ViewError) as caught:
        nl.open(store, views=own)
    assert str(caught.value).startswith(f"{path}:{line}: ") and what in str(caught.value)


@pytest.mark.parametrize(("before", "after", "line", "what"), [
    ("FROM busiest()", "FROM busyest()", 11, "busyest"),
    ('{"ranks": [found.num_rows]}', '{"ranks": [1 / 0]}', 12, "ZeroDivisionError"),
    ('{"ranks": [found.num_rows]}', '{"rank": [found.num_rows]}', 10, "its @column lines name ranks"),
    ("return pa.table(", "return (", 10, "analyse returns a pyarrow.Table, not dict"),
    ("import pyarrow as pa", "import pyarow as pa", 7, "No module named 'pyarow'"),
])
def test_what_goes_wrong_in_an_analysis_is_named_with_file_and_line(
    store: Path, own: Path, before: str, after: str, line: int, what: str,
) -> None:
    assert before in RANKS
    (own / "ranks.py").write_text(RANKS.replace(before, after))
    with nl.open(store, views=own) as opened, pytest.raises(ViewError) as caught:
        opened.view("ranks")
    assert str(caught.value).startswith(f"{own / 'ranks.py'}:{line}: ") and what in str(caught.value)


@pytest.mark.parametrize(("name", "text", "message"), [
    ("kernel_summary.sql", LISTED.replace("_listed", "kernel_summary"), r"kernel_summary\.sql:7: nsightlens has a view"),
    ("kernels.sql", LISTED.replace("_listed", "kernels"), r"kernels\.sql:7: nsightlens has a view or table"),
    ("ranks.sql", LISTED.replace("_listed", "ranks"), r"ranks\.py:10: .*ranks\.sql is called ranks, too"),
    ("bad.py", "def analyse(ask)\n", r"bad\.py:1: no Python"),
    ("bad.py", '"""Doc.\n@scope run\n"""\ndef analyse(ask, *, x=print): ...\n', r"bad\.py:4: the default of x is no literal"),
    ("bad.sql", b"\xff\xfe", r"bad\.sql:1: it cannot be read"),
])
def test_names_that_are_taken_and_files_that_are_none(own: Path, name: str, text: str | bytes, message: str) -> None:
    (own / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ViewError, match=message):
        folder.load(own)


def test_an_analysis_may_refuse_its_parameters(store: Path, own: Path) -> None:
    refuses = 'from nsightlens.errors import UsageError\n    raise UsageError("least is 0 or more")\n    found = ask('
    (own / "ranks.py").write_text(RANKS.replace("found = ask(", refuses))
    with nl.open(store, views=own) as opened, pytest.raises(UsageError, match=r"^least is 0 or more$"):
        opened.view("ranks", least=-1)


def test_a_folder_given_by_a_relative_path(store: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own / "ranks.py").write_text(RANKS.replace("found.num_rows", "1 / 0"))
    monkeypatch.chdir(own.parent)
    with nl.open(store, views=own.name) as opened, pytest.raises(ViewError, match=rf"^{own.name}/ranks\.py:12: "):
        opened.view("ranks")
