"""A real browser for the pages: Chromium as it is installed here, driven by playwright."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from docs.site import tabs


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'nsightlens[browser]'")
    with tabs.browser() as started:
        if started is None:
            pytest.skip(f"no browser here: none of {', '.join(tabs.BROWSERS)} is installed")
        yield started


@dataclass
class Visit:
    """A page that was opened: what it asked for beside its own file, and what went wrong in it."""

    page: Any
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def until(self, condition: str) -> None:
        """Wait until an expression is true. The page's policy forbids what playwright's own waiting evaluates in it."""
        for _ in range(200):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never true: {condition}")

    def rows(self, table: str) -> list[list[str]]:
        """Return the texts of the cells of the first table under a heading that starts with `table`."""
        shown = self.page.locator("section.tab:not([hidden]) section.grid")
        grid = shown.filter(has=self.page.locator(f"h3:text-matches('^{table}')"))
        lines = grid.first.locator("tbody tr")
        found: list[list[str]] = lines.evaluate_all("rows => rows.map(row => [...row.cells].map(c => c.innerText))")
        return found


Opened = Callable[..., Visit]


@pytest.fixture
def visit(browser: Any) -> Iterator[Opened]:
    """Open a report at a state of its address; at the end nothing must have been asked for, and nothing gone wrong."""
    visits: list[Visit] = []
    contexts: list[Any] = []

    def opened(path: Path, state: str = "", **options: Any) -> Visit:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        found = Visit(context.new_page())
        found.page.on("request", lambda request: None if request.url.startswith((path.as_uri(), "data:", "blob:"))
                      else found.requests.append(request.url))
        found.page.on("console", lambda said: found.problems.append(said.text) if said.type in ("error", "warning") else None)
        found.page.on("pageerror", lambda error: found.problems.append(str(error)))
        found.page.goto(f"{path.as_uri()}#{state}")
        if options.get("java_script_enabled", True):
            found.page.wait_for_selector("body[data-ready]")
        visits.append(found)
        return found

    yield opened
    for context in contexts:
        context.close()
    for one in visits:
        assert one.requests == [], "the page asked for something"
        assert one.problems == [], "the browser complained"


@pytest.fixture(scope="session")
def demo_store(bundled_store: Path) -> nl.Store:
    """The store of the bundled run."""
    return nl.open(bundled_store)


@pytest.fixture(scope="session")
def demo(demo_store: nl.Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the bundled run."""
    return nl.report(demo_store).save(tmp_path_factory.mktemp("report") / "demo.html")
