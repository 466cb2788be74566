"""How a table that nsys stats printed and an export of the same report are known to belong together."""

from __future__ import annotations

import hashlib

PRINTED = {report: f"nsys {report} csv" for report in ("cuda_gpu_trace", "nvtx_gpu_proj_trace")}
"""Report -> kind of the file that nsys stats --report REPORT --format csv prints."""
_PREFIX = "nsys-kernel:"


def first_kernel(start: object, correlation: object) -> str:
    """Return a name of a report by its first kernel: its start, as the report has it, and its correlation id."""
    return f"{_PREFIX}{hashlib.sha256(f'{start} {correlation}'.encode()).hexdigest()[:16]}"


def is_first_kernel(name: str) -> bool:
    """Return whether a name is such a one. Slices of one capture may share it: it says nothing of two exports."""
    return name.startswith(_PREFIX)
