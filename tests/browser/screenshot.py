"""docs/report.png: the report of the bundled (simulated) run as a browser shows it. `make screenshot` writes it again."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import nsightlens as nl
from tests.places import ROOT

TARGET = ROOT / "docs" / "report.png"


def main() -> None:
    """Write the picture."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        with nl.ingest(ROOT / "fixtures" / "simulated_resnet18_ddp", store=Path(folder) / "store") as store:
            path = nl.report(store).save(Path(folder) / "report.html")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 640}, color_scheme="light")
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready=overview]")
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
