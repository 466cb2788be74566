"""torch_profile: records a block of the running program with torch.profiler, as wrappers/torch_profiler.py a script."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsightlens.errors import NsightlensError, UsageError
from nsightlens.public_calls import gated
from nsightlens.recording.wrappers import launching, profiler
from nsightlens.terminal.command import Command
from nsightlens.terminal.quoting import Verbatim

if TYPE_CHECKING:
    from nsightlens.store.store import Store

_SCHEDULE = ("skip_first", "wait", "warmup", "active", "repeat")


class Recording:
    """What torch_profile yields. run_dir: where it writes. store: what ingest=True made, after the block; on rank 0 only."""

    def __init__(self, run_dir: Path, profiling: Any, scheduled: bool) -> None:
        self.run_dir = run_dir
        self.store: Store | None = None
        self._profiling, self._scheduled = profiling, scheduled

    def step(self) -> None:
        """End a step of the schedule. Warns where there is none; does nothing on a rank that is not recorded."""
        if not self._scheduled:
            warnings.warn(f"this block is recorded as one window, without steps: for steps give a schedule, such as active=3 "
                          f"(of {', '.join(_SCHEDULE)})", stacklevel=2)
        self._profiling.step()


@gated
@contextmanager
def torch_profile(run_dir: str | Path | None = None, *, ingest: bool | str | Path = False, **options: Any) -> Iterator[Recording]:
    """Record this rank's block into run_dir/torch/rank0003.pt.trace.json.gz, with its sidecar; yields a Recording.

    run_dir: names the run, too; else NSIGHTLENS_RUN_DIR, else a folder below nsightlens-runs/.
    ingest: True: ingest run_dir at the end into the default store, or a path: into that store; Recording.store is then the
        store, opened. In a job of several ranks rank 0 does it once all have written, as torch.distributed knows.
    options: those of torch_profiler.py, with underscores. Of the schedule, in steps (skip_first=5, wait=1, warmup=1, active=3,
        repeat=1): where at least one is given, Recording.step() ends a step; else the block is recorded whole. What is
        recorded: record_shapes=True, profile_memory=False, with_stack=False, with_flops=True, with_modules=False,
        sync_events=True. Who and where: ranks="all", max_ranks=None, overwrite=False, run_id=None, execution_id=None.

    torch is loaded when the block begins. Exceptions of the block pass through, after what was recorded is written.
    Raises UsageError for options that make no sense; NsightlensError where torch is missing, run_dir cannot be written or
    holds this rank's recording already, or nothing was recorded that could be ingested.
    """
    _check(options)
    scheduled = any(name in options for name in _SCHEDULE)
    folder = None if run_dir is None else str(run_dir)
    block = profiler().profile(run_dir=folder, steps_from="script" if scheduled else "none", **options)
    with ExitStack() as stack:
        with _refusals():
            place = launching().capture(launching().find_launch(), "torch", sys.argv or [""], run_dir=folder)
            profiling = stack.enter_context(block)
        recording = Recording(getattr(profiling, "place", place).run_dir, profiling, scheduled)
        yield recording
    if ingest:
        recording.store = _ingested(recording.run_dir, place.launch, None if ingest is True else ingest)


def _check(options: dict[str, Any]) -> None:
    """Raise UsageError for an option that the profiler does not have."""
    known = [field.name for field in fields(profiler().Options) if field.name not in ("run_dir", "steps_from")]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise UsageError(f"torch_profile has no option {name!r}" + (f"; did you mean {near[0]}?" if near else
                             f"; its options are {', '.join(known)}"), subject="option", value=name, choices=known)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn what the wrappers refuse, which would end the program, into an error of ours, in the words of Python."""
    try:
        yield
    except launching().Refused as exc:
        text = "".join(part.in_python if isinstance(part, launching().Option) else part for part in exc.reason)
        raise (UsageError if exc.code == UsageError.exit_code else NsightlensError)(text) from None
    except ModuleNotFoundError as exc:
        if exc.name != "torch":
            raise
        raise NsightlensError(("torch_profile needs PyTorch, and this Python has none: ", Verbatim("pip install torch"))) from exc


def _ingested(run_dir: Path, launch: Any, store: str | Path | None) -> Store | None:
    """Ingest once every rank has written; return the store on rank 0, None on others."""
    command = Command("ingest", (run_dir,)).shell()
    if not launch.single:
        import torch.distributed as ranks

        if not (ranks.is_available() and ranks.is_initialized()):
            raise UsageError(f"ingest in a job of several ranks needs torch.distributed, initialised until the block has ended; "
                             f"the recordings are kept: {command}")
        ranks.barrier()
        if launch.rank:
            return None
    if not next((run_dir / "torch").glob("*.pt.trace.json.gz"), None):
        raise NsightlensError(f"nothing was recorded in {run_dir}, so there is nothing to ingest: run more steps, or give "
                              "smaller skip_first, wait and warmup, or leave the schedule out to record the whole block")
    from nsightlens.pipeline.ingest import ingest
    from nsightlens.store.store import Store
    from nsightlens.views import folder

    return Store(ingest([run_dir], store).store, folder.locate(None))
