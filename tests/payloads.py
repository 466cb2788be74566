"""Texts that a page must show and never obey, and the bundled run with them in every text that a capture or a person writes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sqlite3
from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import Any

from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
PAYLOADS = (
    "<script>alert(1)</script>", "</script><script>alert(1)</script>", "<SCRIPT SRC=//evil.test/x.js></SCRIPT>",
    "<script type=module>import('//evil.test/x.js')</script>", "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>", "</textarea><script>alert(1)</script>", "</noscript><script>alert(1)</script>",
    "<!--", "--><script>alert(1)</script>", "<!-- <script>", "]]><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>", "\"><img src=//evil.test/x onerror=alert(1)>", "'><img src=x onerror=alert(1)>",
    "\" autofocus onfocus=alert(1) x=\"", "' onmouseover='alert(1)", "` onclick=alert(1) `",
    "<svg onload=alert(1)>", "<svg><script href=data:,alert(1) /></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><use href=\"//evil.test/x.svg#a\"/></svg>", "<svg><foreignObject><iframe src=//evil.test/></foreignObject></svg>",
    "<math><mtext><table><mglyph><style><img src onerror=alert(1)>", "<math href=javascript:alert(1)>M</math>",
    "<a href=javascript:alert(1)>x</a>", "javascript:alert(1)//", "data:text/html,<script>alert(1)</script>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>", "<object data=//evil.test/x></object>", "<embed src=//evil.test/x>",
    "<meta http-equiv=refresh content='0;url=//evil.test/'>", "<base href=//evil.test/>",
    "<link rel=stylesheet href=//evil.test/x.css>", "<style>@import '//evil.test/x.css';</style>",
    "\" style=\"background:url(//evil.test/x)", "x;background:url(//evil.test/x)",
    "<form action=//evil.test/><button>x</button></form>",
    "<details open ontoggle=alert(1)>", "<video><source onerror=alert(1)>", "<body onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}{{ config }}", "${alert(1)}#{7*7}<%= 7*7 %>", "&lt;script&gt;alert(1)&lt;/script&gt;&#60;b&#62;&Tab;",
    "a\u2028b\u2029c\u0085d", "\u202egnp.exe\u2066\u200b\ufeff", "__proto__", "constructor", "\\u003cscript\\u003e\\x3c\\",
)
_OF_THE_TOOLS = re.compile(r"ProfilerStep#\d+|cuda?[A-Z]\w+|GPU \d+|\d*|[0-9a-fA-F]{16,}|.*\.\.\..*")
"""Words that a tool looks for as a whole: a reader that does not find them sees another capture."""
_EVENTS = {"kernel", "cpu_op", "user_annotation", "gpu_user_annotation", "python_function"}
_ARGS = {"Process Group Name", "Process Group Description", "Collective name", "dtype", "Call stack", "Python module id"}
_NCU_COLUMNS = {"Process Name", "Host Name", "Kernel Name", "Rule Name", "Rule Description", "Body Item Label"}
_TEXTS = {"StringIds": ("value",), "NVTX_EVENTS": ("text", "jsonText"), "PROCESSES": ("name",), "TARGET_INFO_GPU": ("name",),
          "DIAGNOSTIC_EVENT": ("text",), "META_DATA_CAPTURE": ("value",)}
_LONGEST = {"host": 80, "file": 200, "run": 200, "problems": 200}
"""Characters of a payload, where a longer text is refused."""


class Planted:
    """Gives each distinct text of a field one payload more behind it, the next one each time. texts: those, by field."""

    def __init__(self, payloads: tuple[str, ...], turn: int = 0) -> None:
        self._payloads, self._numbers = payloads, count(turn)
        self._known: dict[str, str] = {}
        self.texts: dict[str, set[str]] = defaultdict(set)

    def __call__(self, field: str, text: str) -> str:
        if _OF_THE_TOOLS.fullmatch(text):
            return text
        if text not in self._known:  # a kernel has one name under all tools
            payload = self._payloads[next(self._numbers) % len(self._payloads)]
            self._known[text] = f"{text} {payload if len(payload) < _LONGEST.get(field, 1 << 30) else PAYLOADS[13]}"
        self.texts[field].add(self._known[text])
        return self._known[text]


def plant(folder: Path, planted: Planted) -> Path:
    """Write the bundled run with planted texts below `folder`; return it."""
    for source in sorted(RUN.rglob("*.*")):
        target = folder / source.relative_to(RUN)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.name.endswith(".pt.trace.json.gz"):
            target = target.with_name(_file_name(source.name, planted))
            trace = _trace(json.loads(gzip.decompress(source.read_bytes())), planted)
            target.write_bytes(gzip.compress(json.dumps(trace).encode()))
        elif source.suffix == ".sqlite":
            target.write_bytes(source.read_bytes())
            _report(target, planted)
        elif source.suffix == ".csv":
            _page(source, target, planted)
        elif source.name.endswith(".run.json"):
            target.write_text(json.dumps(_sidecar(json.loads(source.read_text()), planted)))
    (folder / _file_name("notes.json", planted)).write_text('{"schemaVersion": 1, "traceEvents": [')
    return folder


def _file_name(name: str, planted: Planted) -> str:
    """Return a name with a payload that a file's name can hold."""
    stem, _, ending = name.partition(".")
    name = planted("file", stem).replace("/", "∕")
    planted.texts["file name"].add(name)
    return f"{name}.{ending}"


def _trace(trace: dict[str, Any], planted: Planted) -> dict[str, Any]:
    trace["host_name"] = planted("host", trace["host_name"])
    for device in trace["deviceProperties"]:
        device["name"] = planted("device", device["name"])
    for group in trace["distributedInfo"]["pg_config"]:
        group["pg_desc"] = planted("group", group["pg_desc"])
    for event in trace["traceEvents"]:
        arguments = event.get("args") or {}
        if event.get("cat") in _EVENTS:
            event["name"] = planted(event["cat"], event["name"])
        if event["ph"] == "M" and "name" in arguments:
            arguments["name"] = planted("process", arguments["name"])
        for key in _ARGS & arguments.keys():
            if isinstance(arguments[key], str):
                arguments[key] = planted(key, arguments[key])
    return trace


def _report(path: Path, planted: Planted) -> None:
    connection = sqlite3.connect(path)
    connection.create_function("planted", 2, lambda field, text: planted(field, text) if isinstance(text, str) else text)
    for table, columns in _TEXTS.items():
        for column in columns:
            connection.execute(f"UPDATE {table} SET {column} = planted('{table}.{column}', {column})")
    connection.execute("UPDATE TARGET_INFO_SYSTEM_ENV SET value = planted('host', value) WHERE name = 'Hostname'")
    connection.commit()
    connection.close()


def _page(source: Path, target: Path, planted: Planted) -> None:
    said, quote, table = source.read_text().partition('"ID"')
    heads, *rows = csv.reader(io.StringIO(quote + table))
    with target.open("w", newline="") as written:
        written.write(said)
        writer = csv.writer(written, quoting=csv.QUOTE_ALL)
        writer.writerow(heads)
        for row in rows:
            writer.writerow([planted(f"ncu {head}", cell) if head in _NCU_COLUMNS and cell else cell
                             for head, cell in zip(heads, row, strict=False)])


def _sidecar(sidecar: dict[str, Any], planted: Planted) -> dict[str, Any]:
    texts = {"host": "node", "command": "python train.py", "launcher": "torchrun"}
    written = {key: planted(key, str(sidecar.get(key) or default)) for key, default in texts.items()}
    return {**sidecar, **written, "problems": [planted("problems", "a problem")],
            "options": {key: planted("options", value) if isinstance(value, str) else value
                        for key, value in sidecar.get("options", {}).items()}}
