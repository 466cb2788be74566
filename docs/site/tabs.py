"""Pictures of a report's tabs as a browser shows them, light and dark: made with the site, where a browser is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCHEMES = ("light", "dark")
WITHOUT_BROWSER = "Pictures of the report's tabs are left out: no Chromium, or no playwright, was where this site was built."
_WIDTH, _HEIGHT, _TALLEST = 1180, 760, 1500
"""Of a picture, in px: a tab that is longer is cut at its foot."""


def pictures(report: Path, folder: Path) -> dict[str, dict[str, Path]]:
    """Write a picture of each tab of a report below `folder`; return them by tab and scheme, none where no browser is."""
    found: dict[str, dict[str, Path]] = {}
    with browser() as started:
        for scheme in SCHEMES if started else ():
            page = started.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme=scheme)
            page.goto(report.resolve().as_uri())
            page.wait_for_selector("body[data-ready=overview]")
            for name in page.get_by_role("tab").all_inner_texts():
                page.get_by_role("tab", name=name, exact=True).click()
                page.wait_for_selector(f"body[data-ready={name.lower()}]")
                path = folder / f"report-{name.lower()}-{scheme}.png"
                page.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": _WIDTH, "height": _height(page)})
                found.setdefault(name, {})[scheme] = path
            page.close()
    return found


def _height(page: Any) -> int:
    """Return how high the picture of a page is, in px."""
    return max(_HEIGHT, min(_TALLEST, int(page.evaluate("document.documentElement.scrollHeight"))))


def chromium() -> str | None:
    """Return where Chromium is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window; None where it, or playwright, is not installed."""
    path = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        yield None
        return
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()
