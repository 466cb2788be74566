"""Build the documentation site: `python -m docs.site.build OUT` (make docs-site)."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nsightlens as nl
from docs.site.gallery import gallery
from docs.site.notebooks import notebook_page
from docs.site.views import example, view_index, view_page
from nsightlens.views import registry

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "fixtures" / "simulated_resnet18_ddp"
_PLACES = {
    "README.md": "index.md", "docs/README.md": "pages.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
    "wrappers/README.md": "wrappers.md", "docs/views.md": "views/index.md",
}
"""Where pages of the repository lie on the site; what is not here keeps its place in docs/."""
_LINK = re.compile(r"(?P<before>!?\[(?:[^\]\\]|\\.)*\]\()(?P<target>[^)\s]+)(?P<after>\))")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def place(path: str) -> str | None:
    """Return where a file of the repository lies on the site, None for one that has no page there."""
    if path in _PLACES:
        return _PLACES[path]
    if path.startswith("docs/") and path.endswith((".md", ".png", "Containerfile")):
        return path.removeprefix("docs/")
    if path.startswith("notebooks/"):
        return path.removesuffix(".ipynb") + ".md" if path.endswith(".ipynb") else path
    return None


def relinked(text: str, source: str) -> str:
    """Return Markdown whose links lead to where their targets lie on the site; links to other files become their text.

    source: the page's path in the repository.
    """
    here = posixpath.dirname(place(source) or source)

    def lead(found: re.Match[str]) -> str:
        target, _, anchor = found["target"].partition("#")
        if "://" in target or not target:
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path == "docs/views.md" and anchor:
            there, anchor = f"views/{anchor}.md", ""
        elif (placed := place(path)) is not None:
            there = placed
        else:
            return found["before"].lstrip("!")[1:-2]
        return f"{found['before']}{posixpath.relpath(there, here or '.')}{'#' + anchor if anchor else ''}{found['after']}"

    parts = _CODE.split(text)
    return "".join(part if number % 2 else _LINK.sub(lead, part) for number, part in enumerate(parts))


def write_pages(pages: Path, store: nl.Store) -> None:
    """Write all pages of the site, as Markdown, below the folder `pages`."""
    sources = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "wrappers/README.md"]
    sources += [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")) if path.name != "views.md"]
    for source in sources:
        _put(pages, place(source) or source, relinked((ROOT / source).read_text(encoding="utf-8"), source))
    for picture in [*sorted((ROOT / "docs").glob("*.png")), ROOT / "docs" / "Containerfile"]:
        shutil.copy(picture, pages / picture.name)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text, pictures = notebook_page(path)
        _put(pages, f"notebooks/{path.stem}.md", relinked(text, f"notebooks/{path.name}"))
        for name, content in pictures.items():
            (pages / "notebooks" / name).write_bytes(content)
    known = registry.known()
    _put(pages, "views/index.md", view_index(known))
    for view in known.values():
        _put(pages, f"views/{view.name}.md", view_page(view, example(store, view)))
    _put(pages, "gallery.md", gallery(store, pages))


def _put(pages: Path, name: str, text: str) -> None:
    target = pages / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def configuration(pages: Path) -> str:
    """Return mkdocs.yml with the pages of each folder (`tutorials/`) in its navigation."""
    lines = []
    for line in (Path(__file__).parent / "mkdocs.yml").read_text(encoding="utf-8").splitlines():
        if (folder := re.fullmatch(r"(  - \w+: )(\w+)/", line)):
            found = sorted((page.relative_to(pages).as_posix() for page in (pages / folder[2]).glob("*.md")),
                           key=lambda name: (not name.endswith("index.md"), name))
            line = f"{folder[1]}[{', '.join(found)}]"
        lines.append(line)
    return "\n".join(lines) + "\n"


def build(out: Path) -> int:
    """Build the site below `out`; return mkdocs's exit code, which is not 0 where a link is dead."""
    pages = out / "pages"
    shutil.rmtree(out, ignore_errors=True)
    pages.mkdir(parents=True)
    with nl.ingest(DEMO, store=out / "store") as store:
        write_pages(pages, store)
    (out / "mkdocs.yml").write_text(configuration(pages), encoding="utf-8")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(out / "mkdocs.yml")]
    return subprocess.run(words, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1])))
