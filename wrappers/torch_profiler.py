#!/usr/bin/env python3
"""Records a training loop with torch.profiler: one trace per rank, ready for `nsightlens ingest`. Needs torch, and uses nvtx.

    python torch_profiler.py [options] train.py args...      no line of train.py changes (also: -m package.module args...)
    torchrun --standalone --nproc-per-node 4 torch_profiler.py --run-dir runs/base train.py args...

    from torch_profiler import annotate, profile             or in the script itself:
    with profile(run_dir="runs/base") as profiler:
        for batch in loader:
            train(batch); profiler.step()

    @annotate                                                one name in the trace of PyTorch and in NVTX (nsys, ncu)
    def attention(q, k, v): ...
    with annotate("loss"): ...

It writes RUN_DIR/torch/rank0003.pt.trace.json.gz (repeated windows: rank0003.window1.pt.trace.json.gz) and the sidecar
rank0003.run.json. To copy it, take nsl_launch.py and nsl_annotate.py along.

What works without touching the script: a step ends where the first torch optimizer that steps returns from step() (--steps-from
optimizer), or where the first DataLoader is asked for its next batch (dataloader). What does not: steps inside a CUDA graph,
optimizers that are no torch.optim.Optimizer, steps that a GradScaler skips; processes that the script starts itself (use
torchrun); a script that runs a torch.profiler of its own; what is open at os._exit() or SIGKILL. A script that knows better says
where its steps end: `end_step = take_steps()`. torch is imported before the script runs: what must be set before `import torch`
belongs into the environment.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import os
import runpy
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from nsl_annotate import annotate, step_range
from nsl_launch import Capture, Option, answer, capture, find_launch, refused, say, selected, write_json

__all__ = ["Options", "Profiling", "annotate", "main", "profile", "step_range", "take_steps"]

TOOL = "torch"
STEPS_FROM = ("optimizer", "dataloader", "none")


@dataclass(frozen=True)
class Options:
    """What to record, and where. The schedule in steps: skip_first, then repeat times wait, warmup, active; repeat 0: endless."""

    run_dir: str | None = None
    run_id: str | None = None
    execution_id: str | None = None
    overwrite: bool = False
    ranks: str = "all"
    max_ranks: int | None = None
    skip_first: int = 5
    wait: int = 1
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    record_shapes: bool = True
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = True
    with_modules: bool = False
    sync_events: bool = True
    steps_from: str = "script"


class Profiling:
    """One profiled rank: the schedule runs on by step(); each window that ends is written at once."""

    def __init__(self, options: Options, place: Capture) -> None:
        self.options, self.place = options, place
        self.steps = self.windows = 0
        self.counts = options.steps_from
        self._counted: object = None
        self.stem = place.stem
        self._began, self._clock = time.time_ns(), time.monotonic_ns()
        self._problems: list[str] = []

    def start(self) -> None:
        """Begin. Raises Refused for a schedule of no steps, and where RUN_DIR cannot be written or holds this rank's trace."""
        import torch
        from torch.profiler import ProfilerActivity, schedule

        o = self.options
        if o.active < 1 or min(o.skip_first, o.wait, o.warmup, o.repeat) < 0:
            raise refused(Option("--active"), " counts from 1; ", Option("--skip-first"), ", ", Option("--wait"), ", ",
                          Option("--warmup"), " and ", Option("--repeat"), " from 0")
        _make_room(self.stem, o.overwrite)
        self._facts = {**self.place.facts(), "tool": TOOL, **_versions(), "options": asdict(o)}
        # Asked through NVML, which leaves CUDA itself untouched until the script sets it up (and forks its workers).
        os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])
        plan = None if o.steps_from == "none" else schedule(
            skip_first=o.skip_first, wait=o.wait, warmup=o.warmup, active=o.active, repeat=o.repeat)
        self._profiler = torch.profiler.profile(
            activities=activities, schedule=plan, on_trace_ready=self._write, record_shapes=o.record_shapes,
            profile_memory=o.profile_memory, with_stack=o.with_stack, with_flops=o.with_flops, with_modules=o.with_modules,
            experimental_config=_sync_events() if o.sync_events else None)
        _claim(self.stem)
        self._write_sidecar(None)
        self._profiler.start()

    def step(self) -> None:
        """End a step."""
        self.steps += 1
        self._profiler.step()

    def optimizer_stepped(self, optimizer: object) -> None:
        """End a step where this is the optimizer that counts: the first that ever steps."""
        if self.counts == "optimizer":
            if self._counted is None:
                self._counted = optimizer
            if self._counted is optimizer:
                self.step()

    def batches(self, loader: object, iterator: Iterator[Any]) -> Iterator[Any]:
        """Return the loader's iterator; where this loader is the first, asking it for more ends a step."""
        if self.counts != "dataloader" or self._counted not in (None, loader):
            return iterator
        self._counted = loader
        return self._ending_steps(iterator)

    def _ending_steps(self, iterator: Iterator[Any]) -> Iterator[Any]:
        for batch in iterator:
            yield batch
            self.step()

    def stop(self, exit_code: int) -> None:
        """End: writes a window that is still open, and the sidecar."""
        o, number = self.options, self._profiler.step_num
        cut = o.steps_from != "none" and self._profiler.current_action.name.startswith("RECORD")
        self._profiler.stop()
        self._write_sidecar(exit_code)
        if cut and self.windows:
            done = (number - o.skip_first) % (o.wait + o.warmup + o.active) - o.wait - o.warmup
            say(f"rank {self.place.launch.rank}: the script ended after {done} of the window's {o.active} steps: "
                f"ProfilerStep#{number} in the trace is no step, but what came after the last one")
        if not self.windows and exit_code:
            say(f"rank {self.place.launch.rank}: nothing was recorded: the script ended with exit code {exit_code} after "
                f"{self.steps} steps, before recording began (after {o.skip_first + o.wait + o.warmup}). Fix that first")
        elif not self.windows:
            say(f"rank {self.place.launch.rank}: nothing was recorded: {self.steps} steps ended, but recording begins after "
                f"{o.skip_first + o.wait + o.warmup}. Run more steps, or give smaller --skip-first, --wait and --warmup"
                + ("" if self.steps else ", or --steps-from dataloader, or none for the whole run"))

    def _write(self, profiler: Any) -> None:
        name = self.stem.name + (f".window{self.windows}" if self.windows else "") + ".pt.trace.json"
        plain, packed = (self.stem.with_name(f".{name}{end}") for end in ("", ".gz"))
        target = self.stem.with_name(f"{name}.gz")
        try:
            profiler.export_chrome_trace(str(plain))
            with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
            packed.replace(target)
        except OSError as exc:   # the training is worth more than its trace
            self._problems.append(f"{target.name}: {exc.strerror or exc}")
            say(f"rank {self.place.launch.rank}: {target} is not written: {exc}")
        else:
            self.windows += 1
            say(f"rank {self.place.launch.rank}: wrote {target}")
        finally:
            plain.unlink(missing_ok=True)
            packed.unlink(missing_ok=True)

    def _write_sidecar(self, exit_code: int | None) -> None:
        ended = exit_code is not None
        content = {
            **self._facts, "gpus": _gpus() if ended else [], "steps": self.steps, "windows": self.windows,
            "problems": self._problems, "started_epoch_ns": self._began,
            "ended_epoch_ns": self._began + time.monotonic_ns() - self._clock if ended else None, "exit_code": exit_code,
        }
        write_json(self.stem.with_name(f"{self.stem.name}.run.json"), content)


def _make_room(stem: Path, overwrite: bool) -> None:
    probe = stem.with_name(f".{stem.name}.write")
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"\0" * 65536)
        probe.unlink()
        old = list(stem.parent.glob(f"{stem.name}.*"))   # step times too: those of another start would be taken for this one's
        restarted = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0" or os.environ.get("SLURM_RESTART_COUNT", "0") != "0"
        if old and not overwrite and not restarted:
            raise refused(f"{old[0]} exists already, from an earlier start: choose another ", Option("--run-dir"), ", or use ",
                          Option("--overwrite"), code=1)
        for path in old:
            path.unlink()
    except OSError as exc:
        raise refused(f"cannot write into {stem.parent} ({exc.strerror}): choose another ", Option("--run-dir"), code=1) from exc


def _claim(stem: Path) -> None:
    try:
        stem.with_name(f"{stem.name}.run.json").touch(exist_ok=False)
    except FileExistsError as exc:   # on every rank, where their launcher is unknown
        raise refused(f"another process records as {stem.name} into {stem.parent} right now: a second start with the same ",
                      Option("--run-dir"), ", or a launcher that is not known here. Give each rank NSIGHTLENS_RANK, "
                      "NSIGHTLENS_LOCAL_RANK and NSIGHTLENS_WORLD_SIZE", code=1) from exc


def _versions() -> dict[str, str | None]:
    import torch

    version = str(torch.__version__)
    return {"tool_version": version, "torch_version": version, "torch_cuda_version": torch.version.cuda,
            "python_version": sys.version.split()[0]}


def _sync_events() -> Any:
    """Return the setting that has Kineto record CUDA's waits, as nsys does; None where this torch has none (before 2.1)."""
    try:
        from torch._C._profiler import _ExperimentalConfig

        return _ExperimentalConfig(enable_cuda_sync_events=True)
    except (ImportError, TypeError):   # an interface that torch may change
        return None


def _gpus() -> list[dict[str, str | float | None]]:
    """Return name, driver, clocks and power limit of the GPU that this process used; empty where it used none."""
    import torch

    if not torch.cuda.is_initialized():
        return []
    used = torch.cuda.get_device_properties(torch.cuda.current_device())
    uuid = f"GPU-{getattr(used, 'uuid', '')}"
    asked = {"driver_version": "driver_version", "clocks.current.sm": "sm_clock_mhz", "clocks.max.sm": "max_sm_clock_mhz",
             "clocks.current.memory": "memory_clock_mhz", "power.limit": "power_limit_w"}
    line = answer("nvidia-smi", "-i", uuid, f"--query-gpu={','.join(asked)}", "--format=csv,noheader,nounits") or ""
    answers = [word.strip() for word in line.split(",")]
    driver, *numbers = answers if len(answers) == len(asked) else [None] * len(asked)
    keys = list(asked.values())[1:]
    known = {key: float(word) if word and word.replace(".", "").isdigit() else None
             for key, word in zip(keys, numbers, strict=True)}
    return [{"name": used.name, "uuid": uuid, "driver_version": driver, **known}]


_active: Profiling | None = None


class _Unprofiled:
    """Stands where a rank is not profiled."""

    def step(self) -> None:
        """Do nothing."""


@contextmanager
def profile(**options: Any) -> Iterator[Profiling | _Unprofiled]:
    """Yield the profiler of this rank, whose step() ends a step. Keywords: the fields of Options. Exceptions pass through."""
    global _active
    chosen, launch = Options(**options), find_launch()
    if _active is not None:
        raise refused("a recording is running in this process already: end it before the next begins")
    if not selected(launch, chosen.ranks, chosen.max_ranks):
        yield _Unprofiled()
        return
    profiling = Profiling(chosen, capture(launch, TOOL, sys.argv, run_dir=chosen.run_dir, run_id=chosen.run_id,
                                          execution_id=chosen.execution_id))
    profiling.start()
    _active = profiling
    code = 1
    try:
        yield profiling
        code = 0
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        raise
    except KeyboardInterrupt:
        code = 130
        raise
    finally:
        with _undisturbed():
            _active = None
            profiling.stop(code)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore SIGINT and SIGTERM, where this thread may: who sends a second one must not lose the trace that is being written."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if (handler := signal.getsignal(number)) is not None:   # None: not set by Python, and could not be put back
                before[number] = handler
                signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for known, handler in before.items():
            signal.signal(known, handler)


def take_steps() -> Callable[[], None]:
    """Return a function that ends a step of the active profiler (or of none); outside hooks then count no more."""
    if _active is None:
        return lambda: None
    _active.counts = "script"
    return _active.step


def _watch_steps() -> None:
    """Make torch's optimizers and data loaders notify the active profiler when a step is done."""
    from torch.optim import Optimizer
    from torch.utils.data import DataLoader

    hook, iterate = Optimizer.profile_hook_step, DataLoader.__iter__

    def counting_hook(function: Callable[..., Any]) -> Callable[..., Any]:
        hooked = hook(function)

        @functools.wraps(hooked)
        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:   # outside of the hook's own range, else that is cut in two
            result = hooked(optimizer, *args, **kwargs)
            if _active is not None:
                _active.optimizer_stepped(optimizer)
            return result

        return step

    def counting_iter(loader: Any) -> Iterator[Any]:
        return iterate(loader) if _active is None else _active.batches(loader, iterate(loader))

    Optimizer.profile_hook_step = staticmethod(counting_hook)
    DataLoader.__iter__ = counting_iter


_HELP = {
    "run_dir": "where to write: DIR/torch/rank0003.* (NSIGHTLENS_RUN_DIR) [nsightlens-runs/<run id>]",
    "run_id": "the workload and its configuration (NSIGHTLENS_RUN_ID) [DIR's name, else the id of the job]",
    "execution_id": "this start of it (NSIGHTLENS_EXECUTION_ID) [from the launcher]",
    "overwrite": "replace this rank's earlier capture in DIR",
    "ranks": "all | 0 | 0,8 | local0, the first rank of each node (PROFRANK, a number is a local rank)",
    "max_ranks": "profile no more than N of them (else RANKCUTOFF=N: only ranks below N)",
    "skip_first": "steps to skip at the start",
    "wait": "steps that each window waits",
    "warmup": "steps traced and discarded before each window",
    "active": "steps to record in each window",
    "repeat": "windows; 0: to the end",
    "record_shapes": "the shapes of the operators' inputs",
    "profile_memory": "each allocation",
    "with_stack": "the Python stack of each operator; slow, and large",
    "with_flops": "operations, estimated, of matrix products and convolutions",
    "with_modules": "the nn.Module of each operator",
    "sync_events": "CUDA's waits, one record each: of threads for the GPU, of streams for events",
    "steps_from": "what ends a step; none: the whole run is one window",
}


def _parser() -> argparse.ArgumentParser:
    head, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(prog="torch_profiler.py", usage="%(prog)s [options] script.py ... | [options] -m module ...",
                                     description=head, epilog=rest.strip("\n"), allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(Options):
        flag, default = f"--{field.name.replace('_', '-')}", field.default if field.default is not MISSING else None
        help_text = _HELP[field.name]
        if isinstance(default, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default,
                                help=help_text if field.name == "overwrite" else f"{help_text} [{'yes' if default else 'no'}]")
        elif field.name == "steps_from":
            parser.add_argument(flag, choices=STEPS_FROM, default=STEPS_FROM[0], help=f"{help_text} [{STEPS_FROM[0]}]")
        else:
            number = isinstance(default, int) or field.name == "max_ranks"
            help_text += "" if default is None else f" [{default}]"
            parser.add_argument(flag, type=int if number else str, default=default,
                                metavar="N" if number else "TEXT", help=help_text)
    rank = os.environ.get("PROFRANK")   # as in the shell wrappers: a local rank of each node
    if rank:
        parser.set_defaults(ranks=f"local{rank}" if rank.isdigit() else rank)
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module")
    parser.add_argument("script", help="the script, or with -m the module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    return parser


def main(words: Sequence[str] | None = None) -> None:
    """Run a script under the profiler; its exit code, its exceptions and its output are its own."""
    given = vars(_parser().parse_args(words))
    script, arguments, module = given.pop("script"), given.pop("arguments"), given.pop("module")
    if not module and not Path(script).is_file():
        raise refused(f"{script}: no such script", code=127)
    sys.modules.setdefault("torch_profiler", sys.modules[__name__])   # so that the script's `import torch_profiler` is this one
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path.cwd()) if module else str(Path(script).resolve().parent)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))   # so that the window still gets written
    with profile(**given) as profiling:
        if isinstance(profiling, Profiling):
            _watch_steps()
            place = profiling.place
            os.environ.update(NSIGHTLENS_TOOL=TOOL, NSIGHTLENS_RUN_DIR=str(place.run_dir), NSIGHTLENS_RUN_ID=place.run)
            if place.execution_id:
                os.environ["NSIGHTLENS_EXECUTION_ID"] = place.execution_id
        if module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
