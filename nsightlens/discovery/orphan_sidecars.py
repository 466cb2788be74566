"""Sidecars whose capture is missing: what was recorded, how it ended, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from nsightlens.discovery.ranks import SIDECAR_SUFFIX, Sidecar, sidecar_content, sidecar_of
from nsightlens.errors import ReadError

CODE = "lost_capture"
_LEFT = {"nsys": "nsys left no report", "ncu": "ncu left no report", "torch": "torch.profiler left no trace"}
_STEP_TIMES = ".steps.json"
_UNFINISHED = ".qdstrm"
_KILLED = ("If it was killed, leave more time between the signal and the kill, or record less (wrappers/README.md, Signals and "
           "limits); if it still runs, ingest again once it has ended")
_IMPORT = ("The .qdstrm beside it holds what was collected: QdstrmImporter, in nsys's folder, turns it into a report. "
           "Then ingest again")
_MEND = "Its last lines in the job's log say why: fix that, and record again"
_EMPTY = {
    "nsys": "nsys's lines in the job's log say why; with --capture-range, see whether the range ever began",
    "ncu": "The .ncu.log beside it says why: most often -k and --launch-skip leave no kernel to measure",
    "torch": "Run more steps, or give smaller --skip-first, --wait and --warmup",
}
_NO_STEP = "No step was completed: give --steps-from dataloader, or none for the whole run"


def stems(captures: Iterable[Path]) -> set[Path]:
    """Return the paths, cut before each of their suffixes, of files that a sidecar may belong to."""
    found: set[Path] = set()
    for path in captures:
        if not path.name.endswith(_STEP_TIMES):
            cuts = (at for at, character in enumerate(path.name) if at and character in "._")
            found.update(path.with_name(path.name[:at]) for at in cuts)
    return found


def why_lost(path: Path) -> tuple[int | None, ReadError] | None:
    """Return the rank, and what is to be said, of a sidecar without a capture; None where none was to be expected, or it was
    there once.
    """
    try:
        content = sidecar_content(path)
        said = sidecar_of(path, content)
    except (OSError, ValueError, RecursionError):
        return None
    tool = content.get("tool")
    if not isinstance(tool, str) or tool not in _LEFT or content.get("report") or content.get("windows"):
        return None
    how, what_to_do = _how_it_ended(path, tool, said, content)
    details = ", ".join(part for part in (_who(said), _when(content), _code(said)) if part)
    kind = f"{_LEFT[tool]}: {how}"
    return said.rank, ReadError(path, f"{kind} ({details})", what_to_do, CODE, kind)


def _how_it_ended(path: Path, tool: str, said: Sidecar, content: Mapping[str, object]) -> tuple[str, str]:
    """Return how a recording ended, and what to do."""
    if tool == "nsys" and path.with_name(path.name.removesuffix(SIDECAR_SUFFIX) + _UNFINISHED).is_file():
        return "nsys was stopped before it wrote one", _IMPORT
    if said.exit_code is None:
        return "it was killed, or still runs", _KILLED
    if said.exit_code:
        return "the program failed", _MEND
    if tool == "torch" and content.get("steps") == 0:
        return "the program ended normally, but recording never began", _NO_STEP
    return "the program ended normally, but nothing was recorded", _EMPTY[tool]


def _who(said: Sidecar) -> str:
    rank = "rank unknown" if said.rank is None else f"rank {said.rank}"
    return f"{rank} on {said.host}" if said.host else rank


def _when(content: Mapping[str, object]) -> str:
    began = content.get("started_epoch_ns")
    if not isinstance(began, int) or not 0 < began < 1 << 63:
        return ""
    return f"started {datetime.fromtimestamp(began // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _code(said: Sidecar) -> str:
    return "no exit code" if said.exit_code is None else f"exit code {said.exit_code}"
