"""A notebook -> a page of the site: its texts, its code and the outputs that are stored in it."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

_SHOWN = ("text/markdown", "image/png", "text/html", "text/plain")
"""Kinds of output, the one that is taken first."""


def notebook_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return the Markdown of a notebook, and its pictures by file name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(_shown(output, f"{path.stem}-{len(pictures)}.png", pictures))
    return "\n\n".join(filter(None, parts)) + "\n", pictures


def _shown(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> str:
    """Return an output as Markdown; a picture goes into `pictures` as `name`."""
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    kind = next((kind for kind in _SHOWN if kind in output.get("data", {})), None)
    if kind is None:
        return ""
    content = "".join(output["data"][kind])
    if kind == "image/png":
        pictures[name] = base64.b64decode(content)
        return f"![What the cell draws]({name})"
    if kind == "text/plain":
        return f"```text\n{content}\n```"
    if kind == "text/markdown":
        return re.sub(r"^#+ ", "#### ", content, flags=re.MULTILINE)
    return re.sub(r"<style.*?</style>", "", content, flags=re.DOTALL).strip()
