"""docs/report.png: the report of the bundled (simulated) run as a browser shows it. `make screenshot` writes it again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nsightlens as nl
from docs.site import tabs
from tests.places import ROOT

TARGET = ROOT / "docs" / "report.png"


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder, tabs.browser() as browser:
        with nl.ingest(ROOT / "fixtures" / "simulated_resnet18_ddp", store=Path(folder) / "store") as store:
            path = nl.report(store).save(Path(folder) / "report.html")
        page = browser.new_page(viewport={"width": 1180, "height": 640}, color_scheme="light")
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready=overview]")
        page.screenshot(path=TARGET)


if __name__ == "__main__":
    main()
