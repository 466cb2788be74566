"""The page around the data: our style sheets and scripts as one of each, and the policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from nsightlens.html_report.overview import MOST_FINDINGS
from nsightlens.terminal.printable import printable

STYLES = ("page", "table", "tree", "chart", "print")
SCRIPTS = (
    "columns", "figures", "dom", "state", "data", "table", "download", "chart", "bars", "scatter", "lanes", "drawing", "canvas",
    "tree", "overview", "operators", "kernels", "selection", "timeline", "ranks", "collectives", "memory", "modules",
    "roofline",
    "host", "compare", "captures", "main",
)


@cache
def style() -> str:
    """Return all style sheets as one."""
    return "".join(_text(f"{name}.css") for name in STYLES)


@cache
def script() -> str:
    """Return all scripts as one, in a scope of its own; each file stands in the order in which it is needed."""
    return '"use strict";(() => {\n' + "".join(_text(f"{name}.js") for name in SCRIPTS) + "})();\n"


@cache
def policy() -> str:
    """Return the Content-Security-Policy: only this style and this script, pictures only from the page itself."""
    return (f"default-src 'none'; script-src {_hash(script())}; style-src {_hash(style())}; img-src blob: data:; "
            "base-uri 'none'; form-action 'none'")


def render(data: dict[str, str], facts: dict[str, Any], overviews: list[Any]) -> str:
    """Return the page: packed tables by name, what the script must know beside them, and the first part."""
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["printable"] = lambda text: printable(str(text), "\n")
    template = environment.from_string(_text("report.html.j2"))
    return template.render(style=style(), script=script(), policy=policy(), data=data, facts=_json(facts), overviews=overviews,
                           most=MOST_FINDINGS)


def _json(value: Any) -> str:
    """Return JSON that cannot end the element that it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(name: str) -> str:
    return files("nsightlens.html_report").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
