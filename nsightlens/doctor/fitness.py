"""Whether this machine and a run directory are ready for profiling: a list of findings, each with its fix."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsightlens.terminal.command import Command
from nsightlens.terminal.quoting import Verbatim, shell_line
from nsightlens.terminal.text import written

if TYPE_CHECKING:
    from nsightlens.discovery.files import CaptureFile
    from nsightlens.terminal.text import Text

GOOD, NOTE, BAD = "good", "note", "bad"
INSTALLATION = ("Python", "packages", "imports")
"""Subjects on nsightlens itself: where one is bad, it cannot read captures."""
_GIB = 1 << 30
_MOST_REFUSED = 5
_TOOL_FOLDERS = {
    "nsys": ("opt/nvidia/nsight-systems/*/bin", "opt/nvidia/nsight-systems-cli/*/bin", "usr/local/cuda*/bin",
             "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Systems/bin"),
    "ncu": ("opt/nvidia/nsight-compute/*", "usr/local/cuda*/bin", "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Compute"),
}
_TOOL_NAMES = {"nsys": "Nsight Systems", "ncu": "Nsight Compute"}
_NAMES = {"kineto": "torch.profiler", "steps": "step times", "nccl_inspector": "NCCL's Inspector",
          "flight_recorder": "PyTorch's flight recorder"}
_HERE = {"nsys": "Here it would only export .nsys-rep files for nsightlens", "ncu": "Its reports are read without it"}
_TORCH = """
import json, torch
nvtx = True
try:
    import nvtx
except ImportError:
    nvtx = torch.version.cuda is not None
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "seen": torch.cuda.is_available(),
                  "kineto": torch.profiler.kineto_available(), "nvtx": bool(nvtx)}))
"""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing looked at. state: good, note (works, but) or bad (something will not work). remedy: what to do, empty where good.

    usable: whether a recording can rely on it.
    """

    subject: str
    state: str
    found: str
    remedy: Text = ""
    usable: bool = True

    @property
    def fix(self) -> str:
        """Return the remedy with its commands as command lines."""
        return written(self.remedy)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where to look. root: the folder that holds /proc, /opt and /usr; python: the one that runs the user's scripts [on PATH]."""

    root: Path = Path("/")
    python: str | None = None

    def text(self, path: str) -> str | None:
        """Return the content of a small system file, None where it cannot be read."""
        try:
            return (self.root / path).read_text(errors="replace")
        except OSError:
            return None


def examine(run_dir: Path | None = None, machine: Machine | None = None, *, captures: bool = True) -> Iterator[CheckResult]:
    """Yield the findings, one as soon as it is known. captures: look into those of the run directory, too."""
    machine = machine or Machine()
    gpus = _gpus()
    yield gpu_finding(gpus)
    for tool in _TOOL_NAMES:
        yield tool_finding(tool, machine, bool(gpus))
    yield from pytorch_findings()
    yield counter_finding(machine, bool(gpus))
    yield from _others_on_counters(machine)
    yield sampling_finding(machine)
    yield torch_finding(machine)
    yield from place_findings(run_dir)
    yield processor_finding(machine)
    if captures and run_dir is not None:
        yield from capture_findings(run_dir)


def _ask(*command: str, seconds: int = 60) -> tuple[int, str] | None:
    """Return (exit code, output) of a command; None where it is missing or times out."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=seconds, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.returncode, done.stdout.strip() or done.stderr.strip()


def _gpus() -> list[str]:
    answer = _ask("nvidia-smi", "--query-gpu=name,driver_version,mig.mode.current", "--format=csv,noheader")
    return answer[1].splitlines() if answer and answer[0] == 0 else []


def gpu_finding(gpus: list[str]) -> CheckResult:
    """Return which GPUs the driver shows. gpus: lines `name, driver, MIG mode`."""
    if not gpus:
        if shutil.which("nvidia-smi"):
            return CheckResult("GPU", BAD, "nvidia-smi is installed, but shows no GPU",
                               "Run nvidia-smi to see why. In a container, start it with --gpus all (docker) or --nv "
                               "(apptainer); "
                               "in a batch system, ask for a GPU", usable=False)
        return CheckResult("GPU", NOTE, "no NVIDIA GPU here (nvidia-smi is not on PATH)",
                           "Record on a machine with a GPU. Reading captures needs none; torch.profiler records CPUs anywhere",
                           usable=False)
    names = [[word.strip() for word in line.split(",")] for line in gpus]
    models = ", ".join(f"{sum(n[0] == m for n in names)} x {m}" for m in dict.fromkeys(n[0] for n in names))
    if any(n[-1] == "Enabled" for n in names):
        return CheckResult("GPU", NOTE, f"{models}, driver {names[0][1]}, cut into slices (MIG)",
                           "Counters of memory shared by several slices are not available to ncu; clocks cannot be locked")
    return CheckResult("GPU", GOOD, f"{models}, driver {names[0][1]}")


def tool_finding(tool: str, machine: Machine, has_gpu: bool) -> CheckResult:
    """Return whether nsys or ncu can be started, or where it is installed but not on PATH. Without a GPU it is only noted."""
    name = _TOOL_NAMES[tool]
    if shutil.which(tool) is None:
        found = [p for pattern in _TOOL_FOLDERS[tool] for p in sorted(machine.root.glob(f"{pattern}/{tool}"), reverse=True)]
        beside = [p.parent for p in found if os.access(p, os.X_OK)]
        if beside:
            return CheckResult(tool, BAD, f"{name} is installed in {beside[0]}, but not on PATH",
                               Verbatim(f'export PATH="{beside[0]}:$PATH"'), usable=False)
        if not has_gpu:
            return CheckResult(tool, NOTE, f"{name} is not on PATH",
                               f"Recording needs it on the machine with the GPU. {_HERE[tool]}",
                               usable=False)
        return CheckResult(tool, BAD, f"{name} is not on PATH",
                           "Load its module (module avail nsight, cuda, nvhpc), or install it: it is part of the CUDA toolkit "
                           "and needs no root", usable=False)
    answer = _ask(tool, "--version")
    if answer is None or answer[0]:
        why = f": {answer[1].splitlines()[-1]}" if answer and answer[1] else ""
        return CheckResult(tool, BAD, f"{tool} is on PATH, but does not start{why}",
                           ("Load another version, or see why: ", shell_line(tool, "--version")), usable=False)
    version = re.search(r"\d{4}\.\d+[.\d]*", answer[1])
    return CheckResult(tool, GOOD, f"{name} {version[0] if version else '(unknown version)'}")


def pytorch_findings() -> Iterator[CheckResult]:
    """Yield whether nsys can annotate PyTorch by itself, and with what, from its own help; nothing where there is no nsys."""
    answer = _ask("nsys", "profile", "--help")
    if answer is None or answer[0] or "--output" not in answer[1]:   # a help that reads otherwise says nothing
        return
    described = re.search(r"^\s*--pytorch=(.*?)(?=^\s*-|\Z)", answer[1], re.MULTILINE | re.DOTALL)
    if described is None:
        yield CheckResult("nsys --pytorch", NOTE, "this nsys does not annotate PyTorch's operators and modules",
                          "For operators, put torch.autograd.profiler.emit_nvtx(record_shapes=True) around the steps")
        return
    values = re.findall(r"\b(?:autograd|functions)-[a-z-]+", described[1])
    yield CheckResult("nsys --pytorch", GOOD, f"annotates PyTorch: nsys_wrapper.sh --pytorch {','.join(dict.fromkeys(values))}"
                      if values else "annotates PyTorch (nsys profile --help has the values)")


def counter_finding(machine: Machine, has_gpu: bool) -> CheckResult:
    """Return whether ncu may read the GPU's counters (ERR_NVGPUCTRPERM where not)."""
    parameters = machine.text("proc/driver/nvidia/params")
    if parameters is None:
        if has_gpu:
            return CheckResult("GPU counters", NOTE, "the driver does not say who may read them",
                               "ncu reports ERR_NVGPUCTRPERM where they are restricted to administrators")
        return CheckResult("GPU counters", NOTE, "no NVIDIA driver on this machine", "Check again on the machine with the "
                                                                                 "GPU", usable=False)
    if "RmProfilingAdminOnly: 0" in parameters:
        return CheckResult("GPU counters", GOOD, "every user may read them (ncu will work)")
    if _is_administrator(machine):
        return CheckResult("GPU counters", GOOD, "restricted to administrators, and this process has the right")
    return CheckResult("GPU counters", BAD, "restricted to administrators: ncu will fail with ERR_NVGPUCTRPERM",
                       ("Ask your administrator for ", Verbatim("options nvidia NVreg_RestrictProfilingToAdminUsers=0"), " in "
                        "/etc/modprobe.d and a reboot, or for a queue with this setting; a container also needs --cap-add "
                        "SYS_ADMIN"),
                       usable=False)


def _is_administrator(machine: Machine) -> bool:
    """Return whether this process has CAP_SYS_ADMIN (root in a container often has not)."""
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", machine.text("proc/self/status") or "", re.MULTILINE)
    return effective is not None and bool(int(effective[1], 16) >> 21 & 1)


def _others_on_counters(machine: Machine) -> Iterator[CheckResult]:
    """Yield a finding where DCGM runs, which locks the counters that ncu needs."""
    for path in (machine.root / "proc").glob("[0-9]*/comm"):
        name = machine.text(str(path.relative_to(machine.root))) or ""
        if name.startswith(("nv-hostengine", "dcgm-exporter")):
            yield CheckResult("GPU counters", NOTE, "DCGM is running; while it samples, ncu cannot use the counters",
                              "Run dcgmi profile --pause before ncu and --resume after, or use your site's job option for it")
            return


def sampling_finding(machine: Machine) -> CheckResult:
    """Return whether nsys may sample the CPU."""
    level = (machine.text("proc/sys/kernel/perf_event_paranoid") or "").strip()
    if not level.lstrip("-").isdigit():
        return CheckResult("CPU sampling", NOTE, "the kernel does not say whether users may sample",
                           "Kernels and NVTX are still recorded; nsys only leaves out CPU samples")
    if int(level) <= 2:
        return CheckResult("CPU sampling", GOOD, f"allowed (perf_event_paranoid = {level})")
    return CheckResult("CPU sampling", NOTE, f"not allowed (perf_event_paranoid = {level}); everything else is recorded",
                       ("For CPU samples in nsys, the administrator has to set ",
                        Verbatim("sysctl kernel.perf_event_paranoid=2")))


def torch_finding(machine: Machine) -> CheckResult:
    """Return which PyTorch the user's Python has."""
    python = machine.python or shutil.which("python") or shutil.which("python3")
    if python is None:
        return CheckResult("torch", BAD, "there is no python on PATH", "Load or activate the environment of your training script",
                           usable=False)
    answer = _ask(python, "-c", _TORCH, seconds=180)
    try:
        facts = json.loads(answer[1].splitlines()[-1]) if answer and answer[0] == 0 else None
    except (ValueError, IndexError):
        facts = None
    if facts is None:
        if answer and "No module named 'torch'" in answer[1]:
            return CheckResult("torch", NOTE, f"{python} has no PyTorch",
                               "Activate the environment of your training script, if it uses PyTorch", usable=False)
        why = answer[1].splitlines()[-1] if answer and answer[1] else "no answer"
        found = f"PyTorch in {python} does not import: {why}"
        return CheckResult("torch", BAD, found, ("Run ", shell_line(python, "-c", "import torch")), usable=False)
    found = f"PyTorch {facts['version']} in {python}"
    if not facts["kineto"]:
        fix = "torch.profiler writes no traces: install another build"
        return CheckResult("torch", BAD, f"{found}, built without Kineto", fix, usable=False)
    if facts["cuda"] is None:
        return CheckResult("torch", NOTE, f"{found}, a build without CUDA",
                           "It profiles the CPU side only. Install a CUDA build where the GPU is")
    if not facts["seen"]:
        return CheckResult("torch", NOTE, f"{found} for CUDA {facts['cuda']}, which sees no GPU",
                           "See GPU above; is CUDA_VISIBLE_DEVICES empty?")
    if not facts["nvtx"]:
        return CheckResult("torch", NOTE, f"{found}, CUDA {facts['cuda']}, without NVTX",
                           ("For annotations in nsys: ", Verbatim("pip install nvtx")))
    return CheckResult("torch", GOOD, f"{found}, CUDA {facts['cuda']}")


def place_findings(run_dir: Path | None) -> Iterator[CheckResult]:
    """Yield whether the run directory and TMPDIR (where nsys collects) can be written and have space."""
    temporary = Path(os.environ.get("TMPDIR") or "/tmp")
    for subject, folder, need, word in (("RUN_DIR", (run_dir or Path()).absolute(), 10, "another RUN_DIR"),
                                        ("TMPDIR", temporary, 5, "TMPDIR on a local disk (export TMPDIR=...)")):
        if subject == "TMPDIR" and not folder.is_dir():   # neither the wrappers nor nsys create it
            yield CheckResult(subject, BAD, f"{folder} does not exist",
                              (f"Choose {word}, or make it: ", shell_line("mkdir", "-p", folder)), usable=False)
            continue
        there = next(f for f in (folder, *folder.parents) if f.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            yield CheckResult(subject, BAD, f"{folder} is not writable", f"Choose {word}", usable=False)
            continue
        try:
            free = shutil.disk_usage(there).free
        except OSError as exc:
            yield CheckResult(subject, BAD, f"{folder} does not answer ({exc.strerror})", f"Choose {word}", usable=False)
            continue
        if free < need * _GIB:
            found = f"{folder}: {free / _GIB:,.1f} GiB free; traces of a long job take more"
            yield CheckResult(subject, BAD if free < _GIB else NOTE, found,
                              f"Free space, choose {word}, or record a shorter window")
        else:
            yield CheckResult(subject, GOOD, f"{folder} is writable, {free / _GIB:,.0f} GiB free")


def processor_finding(machine: Machine) -> CheckResult:
    """Return processors and memory that this process may use."""
    have = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    total = re.search(r"MemTotal:\s*(\d+) kB", machine.text("proc/meminfo") or "")
    memory = f", {int(total[1]) / (1 << 20):,.0f} GiB of memory" if total else ""
    if have == 1 and (os.cpu_count() or 1) > 1:
        return CheckResult("processors", NOTE, f"1 of {os.cpu_count()} processors{memory}: profiler and application share it",
                           "Give each rank several (srun --cpus-per-task, mpiexec --depth and --cpu-bind)")
    return CheckResult("processors", GOOD, f"{have} processors{memory}")


def capture_findings(run_dir: Path) -> Iterator[CheckResult]:
    """Yield the content of a run directory: captures per tool, ranks that are missing, files that cannot be read."""
    from nsightlens.discovery import mixed_workloads
    from nsightlens.discovery.files import find

    if not run_dir.exists():
        yield CheckResult("captures", GOOD, f"{run_dir} does not exist yet; the wrappers create it")
        return
    files = find([run_dir])
    captures = [f for f in files if f.tool and not f.refused]
    if not captures:
        yield CheckResult("captures", NOTE, f"none in {run_dir}",
                          ("Record some, with the scripts that this writes: ", Command("wrappers", ("DIR",))))
    for tool in sorted({str(f.tool) for f in captures}):
        yield _ranks_finding(_NAMES.get(tool, tool), [f for f in captures if f.tool == tool])
    for mixed in mixed_workloads.mixed_runs(captures):
        yield CheckResult("captures", NOTE, mixed.message, mixed_workloads.REMEDY)
    for number, file in enumerate(f for f in files if f.refused):
        if number == _MOST_REFUSED:
            yield CheckResult("captures", NOTE, "more files cannot be read", (Command("scan", (run_dir,)),))
            return
        if file.refused:
            yield CheckResult("captures", BAD, f"{file.path.relative_to(file.root)}: {file.refused.reason}", file.refused.advice)


def _ranks_finding(tool: str, captures: list[CaptureFile]) -> CheckResult:
    ranks = {f.rank[0] for f in captures}
    known = sorted(r for r in ranks if r is not None)
    size = max((f.sidecar.world_size or 0 for f in captures if f.sidecar), default=0)
    missing = sorted(set(range(size)) - set(known))
    found = f"{tool}: {len(captures)} file{'' if len(captures) == 1 else 's'}"
    found += f", rank{'' if len(known) == 1 else 's'} {_spans(known)}" if known else ""
    if None in ranks:
        return CheckResult("captures", NOTE, f"{found}; some have no rank",
                           ("Record with the wrappers, or say where it is in names of files: ",
                            Command("ingest", ("RUN_DIR", ("--rank-pattern", "REGEX")))))
    if missing:
        return CheckResult("captures", NOTE, f"{found} of {size}; missing: {_spans(missing)}",
                           "Expected if --ranks selected so; else check the output of those ranks")
    return CheckResult("captures", GOOD, found)


def _spans(numbers: list[int]) -> str:
    """Return 0-3, 8 for 0, 1, 2, 3, 8."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def verdict(findings: list[CheckResult]) -> str:
    """Return one sentence: what can be recorded here, or that nsightlens itself is not well installed."""
    if any(f.state == BAD and f.subject in INSTALLATION for f in findings):
        return "nsightlens cannot read captures here until its installation is repaired."
    usable = {f.subject for f in findings} - {f.subject for f in findings if not f.usable}
    if not {"RUN_DIR", "TMPDIR"} <= usable:
        return "Nothing can be recorded until there is a writable folder."
    needs = {"nsys": {"GPU", "nsys"}, "ncu": {"GPU", "ncu", "GPU counters"}, "torch.profiler": {"torch"}}
    can = [tool for tool, subjects in needs.items() if subjects <= usable]
    if not can:
        return "No profiler can record here; captures from elsewhere can be read."
    return f"Can record here: {', '.join(can)}{'' if 'GPU' in usable else ' (the CPU side)'}."
