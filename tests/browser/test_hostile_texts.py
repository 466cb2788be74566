"""What a capture or a person writes is shown as text: no element comes of it, nothing runs, and no request leaves the page."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest

import nsightlens as nl
from nsightlens.terminal.printable import printable
from tests.browser.conftest import Opened, Visit
from tests.browser.test_page import TABS
from tests.payloads import PAYLOADS, Planted, plant

FORMS = {"each": PAYLOADS, "all": (" ".join(PAYLOADS),)}
"""One payload behind each text, and all of them behind each."""
STATES = ("tab", "run", "rank", "tool", "steps", "op", "kernel", "kernels", "module", "module_time", "find", "group", "roofline",
          "precision", "level", "align", "device", "measure", "pair", "step", "from", "to", "constructor", "__proto__")
SHOWN = {"run", "file name", "device", "problems", "DIAGNOSTIC_EVENT.text", "kernel", "cpu_op", "python_function", "host",
         "user_annotation", "StringIds.value", "NVTX_EVENTS.text", "ncu Kernel Name"}
"""Fields that a page has a place for."""
LEGIBLE = 200
"""Characters of a text that a page shows at least: it cuts long ones."""
Page = tuple[Path, Planted]

CENSUS = """[...document.querySelectorAll('*')].map(e => `${e.tagName} ${e.getAttributeNames().sort()}`).concat(
    [...Array(1)].flatMap(() => { const found = [], all = document.createTreeWalker(document, NodeFilter.SHOW_COMMENT);
        while (all.nextNode()) found.push('comment ' + all.currentNode.data); return found; }))"""
TEXTS = """[...document.body.querySelectorAll(':not(script)')].flatMap(e => [...[...e.childNodes].filter(n => n.nodeType === 3)
    .map(n => n.data), e.title ?? '', e.ariaLabel ?? '', String(e.value ?? '')])"""
ADDRESSES = "[...document.querySelectorAll('[href],[src],[srcset],[action],[data],[style]')].map(e => e.outerHTML)"


@pytest.fixture(scope="session")
def planted_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Page]:
    """(form) -> the report of the bundled run with payloads in that form, else with a plain word, and what was planted."""
    made: dict[str, Page] = {}

    def page(form: str) -> Page:
        if form not in made:
            folder = tmp_path_factory.mktemp("planted")
            planted = Planted(FORMS.get(form, ("plain",)))
            run = planted("run", "a run")
            plant(folder / "run", planted)
            with warnings.catch_warnings(action="ignore"), nl.ingest(folder / "run", store=folder / "s", run=run) as store:
                made[form] = nl.report(store).save(folder / "page.html"), planted
        return made[form]

    return page


def opened(visit: Opened, path: Path, tab: str) -> Visit:
    """Open a tab, without the policy that would hide what only it holds back; in operators and kernels, the details of one."""
    seen = visit(path, f"tab={tab}", bypass_csp=True)
    seen.page.on("dialog", lambda dialog: seen.problems.append(f"dialog: {dialog.message}"))
    if tab in ("operators", "kernels"):
        seen.page.locator(f"#{tab} section.grid tbody button").first.click()
        seen.page.wait_for_selector(f"#{tab} #detail")
    return seen


@pytest.mark.parametrize("form", FORMS)
def test_texts_are_shown_and_do_nothing(visit: Opened, planted_page: Callable[[str], Page], form: str) -> None:
    plain, _ = planted_page("plain")
    path, planted = planted_page(form)
    said: list[str] = []
    for tab in TABS:
        seen, expected = opened(visit, path, tab), opened(visit, plain, tab)
        assert set(seen.page.evaluate(CENSUS)) <= set(expected.page.evaluate(CENSUS)), tab
        assert not [one for one in seen.page.evaluate(ADDRESSES) if "evil" in one or "alert" in one]
        assert seen.page.url.startswith(path.as_uri()) and len(seen.page.context.pages) == 1
        said += seen.page.evaluate(TEXTS)
    text = "\n".join(said)
    assert not {field for field in SHOWN if not any(printable(one, "\n")[:LEGIBLE] in text for one in planted.texts[field])}


def test_an_address_does_nothing_but_choose(visit: Opened, planted_page: Callable[[str], Page]) -> None:
    """A link to a report that was mailed is somebody else's text, too."""
    path, _ = planted_page("each")
    known = set(visit(path, bypass_csp=True).page.evaluate(CENSUS))
    for tab in ("operators", "kernels", "timeline", "modules", "roofline", "memory", ""):
        seen = opened(visit, path, tab or "overview")
        known |= set(seen.page.evaluate(CENSUS))
        for payload in PAYLOADS:
            state = dict.fromkeys(STATES, payload) | ({"tab": tab} if tab else {})
            seen.page.evaluate("hash => { delete document.body.dataset.ready; location.hash = hash; }", urlencode(state))
            seen.until("document.body.dataset.ready")
            assert not seen.page.evaluate("[...document.querySelectorAll('body script[src], img, iframe, object, base')].length")
            assert seen.page.url.startswith(path.as_uri())
