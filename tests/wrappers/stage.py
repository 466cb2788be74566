"""A folder with stub nsys, ncu, nvidia-smi and launchers, in which the wrappers are run by real bash."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.places import ROOT

WRAPPERS = ROOT / "wrappers"
SHELLCHECK = Path(sys.executable).with_name("shellcheck")

_NSYS = r"""#!/usr/bin/env bash
log() { printf '%s\0' "$@" >"$STUB_LOG/nsys.$1.$(date +%s%N).$$"; }
case "$1 ${2-}" in
  "--version "*) echo "NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0"; exit ;;
  "profile --help") printf '%b' "$STUB_NSYS_HELP"; exit ;;
  "export --help") echo "${STUB_EXPORT_HELP-}"; exit ;;
esac
log "$@"
command=$1; shift
for word; do case $word in --output=*) out=${word#*=} ;; esac; done
if [[ $command == export ]]; then echo sqlite >"$out"; exit "${STUB_NSYS_EXPORT:-0}"; fi
[[ -z ${STUB_SLOW_START-} ]] || sleep 1
echo "TMPDIR=$TMPDIR" >"$STUB_LOG/nsys.tmpdir.$$"
while [[ $1 == -* ]]; do shift; done
"$@"
[[ -n ${STUB_NSYS_NO_REPORT-} ]] || echo report >"$out.nsys-rep"
exit "${STUB_NSYS_CODE:-0}"
"""

_NCU = r"""#!/usr/bin/env bash
case ${1-} in
  --version) printf 'NVIDIA (R) Nsight Compute\nVersion 2025.2.0.0 (build 35613519)\n'; exit ;;
  --help) echo "${STUB_NCU_HELP---rename-kernels --print-details}"; exit ;;
esac
printf '%s\0' "LC_ALL=${LC_ALL-}" "$@" >"$STUB_LOG/ncu.$1.$(date +%s%N).$$"
if [[ $1 == --import ]]; then printf '"ID","Kernel Name"\n"0","k"\n'; exit "${STUB_NCU_IMPORT:-0}"; fi
while [[ $1 == --* ]]; do
  case $1 in
    --export) out=$2; shift 2 ;;
    --log-file) log=$2; shift 2 ;;
    --force-overwrite | --nvtx) shift ;;
    *) shift 2 ;;
  esac
done
"$@"
case ${STUB_NCU-} in
  permission) echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters" >"$log" ;;
  nothing) echo "==WARNING== No kernels were profiled." >"$log" ;;
  *) echo "==PROF== Disconnected" >"$log"; echo report >"$out.ncu-rep" ;;
esac
exit "${STUB_NCU_CODE:-0}"
"""

_NVIDIA_SMI = r"""#!/usr/bin/env bash
case "$*" in
  *query-gpu*)
    echo "0, NVIDIA A100-SXM4-40GB, GPU-aaaa, 550.54.15, 210, 1410, 1215, 1215, 400.00"
    echo "1, NVIDIA A100-SXM4-40GB, GPU-bbbb, 550.54.15, 210, 1410, [N/A], 1215, [Not Supported]" ;;
  *) echo "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4     |" ;;
esac
"""

# A launcher: starts n ranks, each with the launcher's variables, two per node; $1 names it.
_LAUNCH = r"""#!/usr/bin/env bash
n=1 me=${0##*/} words=("$0" "$@")
printf '%s\0' "${words[@]}" >"$STUB_LOG/$me.$(date +%s%N).$$"
id=start-$$
while [[ $1 == -* ]]; do
  case $1 in
    -n | --nproc-per-node | --ntasks) n=$2; shift 2 ;;
    --rdzv-id) id=$2; shift 2 ;;
    --ppn | --env | --nnodes | --rdzv-*) shift 2 ;;
    *) shift ;;
  esac
done
code=0 pids=()
for ((r = 0; r < n; r++)); do
  l=$((r % 2)) node=$((r / 2))
  case $me in
    mpiexec) set_=("PMI_RANK=$r" "PMI_SIZE=$n" "PALS_RANKID=$r" "PALS_LOCAL_RANKID=$l" "PALS_NODEID=$node" "PALS_APID=$id") ;;
    srun) set_=("SLURM_JOB_ID=${SLURM_JOB_ID:-77}" "SLURM_STEP_ID=$$" "SLURM_PROCID=$r" "SLURM_LOCALID=$l" "SLURM_NODEID=$node"
      "SLURM_STEP_NUM_TASKS=$n") ;;
    torchrun) set_=("TORCHELASTIC_RUN_ID=$id" "RANK=$r" "LOCAL_RANK=$r" "WORLD_SIZE=$n" "LOCAL_WORLD_SIZE=$n" "GROUP_RANK=0") ;;
  esac
  env "${set_[@]}" "$@" & pids+=("$!")
done
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
exit "$code"
"""

NSYS_HELP = (
    r"\t-s, --sample=\n\t   Possible values are 'nccl'.\n\n\t-t, --trace=\n\t   Possible values are 'cuda', 'nvtx', 'cublas',\n"
    r"\t   'mpi', 'osrt', 'cudnn' or 'none'.\n\n\t--trace-fork-before-exec=\n\t   nccl\n"
)


def default_signals() -> None:
    """Undo what `nohup make test &` hands down: a shell cannot trap a signal that was ignored when it began."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@dataclass
class Stage:
    """`path`: the working folder; `bin`: the stubs; `log`: what the stubs were called with."""

    path: Path

    def __post_init__(self) -> None:
        self.bin, self.log = self.path / "bin", self.path / "log"
        self.bin.mkdir()
        self.log.mkdir()
        for name, text in {
            "nsys": _NSYS,
            "ncu": _NCU,
            "nvidia-smi": _NVIDIA_SMI,
            "mpiexec": _LAUNCH,
            "srun": _LAUNCH,
            "torchrun": _LAUNCH,
            "nsightlens": '#!/bin/sh\necho "ingest $*" >>"$STUB_LOG/ingested"\n',
        }.items():
            self.stub(name, text)
        for name in ("python", "python3"):
            self.stub(name, f'#!/bin/sh\nexec {sys.executable} "$@"\n')

    def stub(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def without(self, *names: str) -> None:
        for name in names:
            (self.bin / name).unlink()

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment: nothing of the caller's launcher, job or tools."""
        return {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(self.path),
            "STUB_LOG": str(self.log),
            "STUB_NSYS_HELP": NSYS_HELP,
            "TMPDIR": str(self.path / "log"),
            **more,
        }

    def start(self, *words: str | bytes, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            words,
            cwd=self.path,
            env=self.environment(**env),
            preexec_fn=default_signals,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, script: str, *words: str | bytes, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a wrapper (or, with a /, any program) to its end."""
        program = script if "/" in script else str(WRAPPERS / script)
        return subprocess.run(
            [program, *words],
            cwd=self.path,
            env=self.environment(**env),
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def bash(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run("/bin/bash", "-c", script, **env)

    def calls(self, what: str) -> list[list[str]]:
        """Return what a stub was called with, call by call: `nsys.profile`, `nsys.export`, `ncu.--set`, `ncu.--import`."""
        return [p.read_bytes().decode(errors="surrogateescape").split("\0")[:-1] for p in sorted(self.log.glob(f"{what}.*"))]

    def sidecar(self, name: str) -> dict[str, Any]:
        value = json.loads((self.path / name).read_bytes())
        assert isinstance(value, dict)
        return value

    def files(self) -> list[str]:
        """Return what was written, other than the stubs' own."""
        return sorted(
            str(p.relative_to(self.path))
            for p in self.path.rglob("*")
            if p.is_file() and not str(p.relative_to(self.path)).startswith(("bin/", "log/"))
        )


def readme_blocks(language: str) -> list[str]:
    """Return the README's blocks of code in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (WRAPPERS / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def readme_lines(with_torch: bool) -> list[str]:
    """Return the README's command lines: those that need a PyTorch (tests/workloads runs them), or the others."""
    lines = [line for block in readme_blocks("bash") for line in block.splitlines() if line.strip()]
    return [line for line in lines if ("torch_profiler.py" in line or "workloads/" in line) == with_torch]


def leftovers(stage: Stage) -> list[str]:
    """Return the wrappers' own temporary folders that were not taken away."""
    return [name for name in os.listdir(stage.log) if name.startswith("nsl")]
