"""The first bytes of a file that is no Kineto trace -> what it is, and what to do with it."""

from __future__ import annotations

import re
from pathlib import Path

from nsightlens.errors import ReadError, UnknownFormatError

# (pattern in the first bytes, what the file is, what to do)
_KINDS: tuple[tuple[re.Pattern[bytes], str, str], ...] = (
    (re.compile(rb"\A\x00\x05\x16\x07"), "AppleDouble file: macOS metadata beside a file of nearly the same name, no trace",
     "Delete it, and read the file without the leading '._'"),
    (re.compile(rb"\A(?:PK\x03\x04|\x28\xb5\x2f\xfd|\xfd7zXZ\x00|BZh)"), "compressed file: neither plain JSON nor gzip",
     "Decompress it first"),
    (re.compile(rb'"rocprofiler-sdk-tool"\s*:'), "rocprofv3 JSON: AMD's own profiler wrote it, not the PyTorch profiler",
     "Export the trace with torch.profiler's export_chrome_trace"),
    (re.compile(rb'"(?:BeginNs|CompleteNs)"\s*:'), "rocprof JSON: AMD's own profiler wrote it, not the PyTorch profiler",
     "Export the trace with torch.profiler's export_chrome_trace"),
    (re.compile(rb'\A\s*\{(?=.*"nodes"\s*:)(?=.*"schema"\s*:\s*"[^"]*")', re.DOTALL),
     "Chakra execution trace: operators and their dependencies, without the times of GPU work",
     "Read the Kineto trace that was recorded with it"),
    (re.compile(rb'"(?:CPU|CUDA) functions"'), "trace of PyTorch's autograd profiler before 1.8: it has no categories",
     "Record again with torch.profiler"),
)
_HEAD_BYTES = 1 << 16
_CHROME = re.compile(rb'"traceEvents"\s*:\s*\[|\A\s*\[\s*\{')


def refusal(path: Path, head: bytes) -> ReadError:
    """Return why a file whose (decompressed) content begins with `head` cannot be read as a Kineto trace."""
    if not head.strip():
        return ReadError(path, "it is empty", "Record or copy it again", "empty_file")
    for pattern, what, to_do in _KINDS:
        if pattern.search(head, 0, _HEAD_BYTES):
            return UnknownFormatError(path, what, to_do)
    if _CHROME.search(head):
        what = "another program's Chrome trace: none of its events has a category or key of the PyTorch profiler"
        return UnknownFormatError(path, what, "Leave it out, or export the trace with torch.profiler's export_chrome_trace")
    what = "not a Kineto trace: it has no list of traceEvents"
    return UnknownFormatError(path, what, "Leave it out, or export the trace with torch.profiler's export_chrome_trace")


def merged(path: Path, labels: set[str]) -> ReadError:
    """Return why a trace whose processes bear these labels cannot be read: ids and devices mean something in one process."""
    named = " and ".join(repr(label[:40]) for label in sorted(labels))
    what = f"trace of several processes, merged by another program, which labels their ids: {named} among others"
    return UnknownFormatError(path, what, "Read the traces that it was merged from, one of each process")


def is_foreign(head: bytes) -> bool:
    """Return whether `head` begins a file that `refusal` can name."""
    return any(pattern.search(head, 0, _HEAD_BYTES) for pattern, _, _ in _KINDS)
