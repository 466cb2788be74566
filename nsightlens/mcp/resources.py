"""Resources: what the words mean, which views there are, and the tables."""

from __future__ import annotations

from pathlib import Path

from nsightlens.errors import UsageError
from nsightlens.schema import TABLES
from nsightlens.views import registry
from nsightlens.views.topics import TOPICS

RESOURCES = {
    "nsightlens://glossary": ("glossary", "What grade, window, undisturbed, waiting and other words mean"),
    "nsightlens://views": ("views", "All views with what each answers, by question"),
    "nsightlens://tables": ("tables", "The tables that sql can name, with their columns and units"),
}


def content(uri: str) -> str:
    """Return the text of a resource. Raises UsageError for one that there is not."""
    match uri:
        case "nsightlens://glossary":
            return _glossary()
        case "nsightlens://views":
            return _views()
        case "nsightlens://tables":
            return _tables()
    raise UsageError(f"there is no resource {uri}; there are {', '.join(RESOURCES)}", subject="resource", value=uri,
                     choices=list(RESOURCES))


def _glossary() -> str:
    """Return docs/glossary.md: inside an installed package, else in the checkout."""
    package = Path(__file__).resolve().parents[1]
    place = next(path for path in (package / "_glossary.md", package.parent / "docs" / "glossary.md") if path.is_file())
    return place.read_text(encoding="utf-8")


def _views() -> str:
    known = registry.known()
    lines = []
    for topic, question in TOPICS.items():
        lines += [f"## {question}", "", *(f"- {view.name}: {view.summary}" for view in known.values() if view.topic == topic), ""]
    return "\n".join(lines)


def _tables() -> str:
    lines = []
    for name, table in TABLES.items():
        lines += [f"## {name}", "", *(f"- {column.name}: {column.doc}" for column in table.columns), ""]
    return "\n".join(lines)
