"""What the documentation site is made of: links led to where pages lie, notebooks, views with their example and SQL."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import nsightlens as nl
from docs.site import build, tabs
from docs.site.gallery import gallery
from docs.site.notebooks import notebook_page
from docs.site.views import example, view_index, view_page
from nsightlens.views import registry
from tests.places import ROOT


@pytest.mark.parametrize(("source", "text", "expected"), [
    ("docs/report.md", "[v](views.md#busy_time)", "[v](views/busy_time.md)"),
    ("docs/report.md", "[v](views.md)", "[v](views/index.md)"),
    ("README.md", "![p](docs/report.png) [g](docs/glossary.md#x)", "![p](report.png) [g](glossary.md#x)"),
    ("docs/tutorials/first_nsys_report.md", "[w](../../wrappers/README.md)", "[w](../wrappers.md)"),
    ("docs/capture.md", "[code](../wrappers/torch_profiler.py)", "code"),
    ("docs/report.md", "`[v](views.md)` and [out](https://example.org)", "`[v](views.md)` and [out](https://example.org)"),
    ("notebooks/1_quick_start.ipynb", "[n](4_your_own_sql.ipynb)", "[n](4_your_own_sql.md)"),
])
def test_links_lead_to_the_pages_of_the_site(source: str, text: str, expected: str) -> None:
    assert build.relinked(text, source) == expected


def test_a_page_of_a_view_has_columns_example_and_sql(bundled_store: Path) -> None:
    view = registry.known()["busy_time"]
    with nl.open(bundled_store) as store:
        page = view_page(view, example(store, view))
    assert page.startswith("# busy_time\n") and "| busy_pct |" in page
    assert re.search(r"\$ nsightlens show busy_time\n.*busy_pct", page, re.DOTALL)
    assert "```sql\nCREATE MACRO busy_time" in page


def test_every_view_is_in_the_list() -> None:
    known = registry.known()
    text = view_index(known)
    assert [name for name in known if f"- [{name}]({name}.md)" not in text] == []


def test_a_notebook_is_a_page_with_its_outputs() -> None:
    text, pictures = notebook_page(ROOT / "notebooks" / "1_quick_start.ipynb")
    assert text.startswith("# Quick start") and "```python\n" in text and "<table" in text
    assert [content[:4] for content in pictures.values()] == [b"\x89PNG"] * len(pictures) and pictures


@pytest.mark.parametrize("there", [True, False])
def test_the_gallery_shows_the_tabs_of_the_report_where_a_browser_is(
    bundled_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool,
) -> None:
    if not there:
        monkeypatch.setattr(tabs, "BROWSERS", ("no-such-browser",))
    elif tabs.chromium() is None:
        pytest.skip("no browser here")
    else:
        pytest.importorskip("playwright.sync_api", reason="playwright is an extra: make docs-site")
    with nl.open(bundled_store) as store:
        monkeypatch.chdir(tmp_path)
        page = gallery(store, Path())  # make docs-site gives a relative folder
    pictures = re.findall(r"\]\((gallery/[\w-]+\.png)#only-(light|dark)\)", page)
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name, _ in pictures)
    assert (tmp_path / "gallery" / "report.html").is_file() and (tabs.WITHOUT_BROWSER in page) is not there
    shown = {re.sub(r"gallery/report-|-(light|dark)\.png", "", name) for name, _ in pictures}
    assert len(pictures) == 2 * len(shown) and ({"overview", "operators", "ranks", "modules"} <= shown) is there


@pytest.mark.long
def test_the_site_builds_and_a_dead_link_stops_it(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is an extra: make docs-site")
    out = tmp_path / "site"
    assert subprocess.run([sys.executable, "-m", "docs.site.build", str(out)], cwd=ROOT, check=False).returncode == 0
    assert (out / "site" / "views" / "busy_time.html").is_file() and (out / "site" / "gallery" / "top_kernels.svg").is_file()
    (out / "pages" / "faq.md").write_text("[dead](nowhere.md)\n", encoding="utf-8")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(out / "mkdocs.yml")]
    assert subprocess.run(words, capture_output=True, check=False).returncode != 0


def test_the_site_has_every_page() -> None:
    navigation = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    renamed = {"README.md", "views.md"}
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - renamed
    missing = {page for page in pages if not re.search(rf"[\s\[]{re.escape(page)}\b", navigation)}
    assert not missing, f"docs/site/mkdocs.yml: name {missing} below nav"
