"""Exports binary reports into the folder where they lie: what a job that was killed could not do any more."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path

from nsightlens.discovery.export import REPORTS, convert
from nsightlens.discovery.files import Found, find
from nsightlens.discovery.profiles import exports_beside
from nsightlens.errors import NsightlensError, ReadError

Done = Path | ReadError
"""The export of one report, or why there is none."""


def unexported(roots: Iterable[str | Path]) -> list[Found]:
    """Return the binary reports below `roots` that have no export, or none that can be read, beside them."""
    captures = [f for f in find(roots) if f.tool]
    exported = {report.path for report, _ in exports_beside(captures)}
    return [f for f in captures if f.report in REPORTS and f.path not in exported]


def export_reports(
    reports: list[Found], nsys: str | None, jobs: int, on_done: Callable[[int, Done], None] | None = None,
) -> list[Done]:
    """Export reports, each into <stem>.sqlite beside it, and return what became of them, in the order in which they ended.

    nsys: the program; None: the one on PATH. jobs: how many run at a time. Raises NsightlensError where there is no nsys; a
    report that cannot be exported stops no other.
    """
    if reports and shutil.which(nsys or "nsys") is None:
        raise NsightlensError(f"{nsys or 'nsys'} is not here, and {len(reports)} reports need it. Load its module, or name it: "
                              "--nsys /opt/nvidia/nsight-systems/VERSION/bin/nsys; or run this where nsys is installed")
    done: list[Done] = []
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        stack.callback(pool.shutdown, cancel_futures=True)   # at an interrupt, start no more
        for future in as_completed([pool.submit(_export, report.path, nsys) for report in reports]):
            done.append(future.result())
            if on_done:
                on_done(len(done), done[-1])
    return done


def _export(path: Path, nsys: str | None) -> Done:
    report = REPORTS[0]
    try:   # an export that is there can't be read: half of one
        return convert(report, path, path.with_suffix(report.suffix), nsys, again=True)
    except ReadError as exc:
        return exc
    except OSError as exc:
        why = f"its export cannot be written ({exc.strerror})"
        return ReadError(path, why, "Make room there, or copy it to a folder that you can write", "export_failed")
