"""Stand-ins for nsys and ncu: they accept what the vendor documents and nothing else, run the application, and leave a report.

Run as a script under the name of the tool (`install` puts such scripts into a folder). The options and their values follow
https://docs.nvidia.com/nsight-systems/UserGuide/ (profile, export) and https://docs.nvidia.com/nsight-compute/NsightComputeCli/.
Signals that reach the tool itself do not end it, as it still has to write its report.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ANY = r".+"
BOOLEAN = "true|false"
_TRACES = "cuda|nvtx|cublas|cudnn|mpi|nccl|osrt|ucx|openacc|openmp|opengl|vulkan"
NSYS_PROFILE = {
    "--trace": rf"({_TRACES}|none)(,({_TRACES}))*", "--output": ANY, "--force-overwrite": BOOLEAN, "--stats": BOOLEAN,
    "--show-output": BOOLEAN, "--cuda-graph-trace": "(graph|node)(:(host-only|host-and-device))?",
    "--capture-range": "none|cudaProfilerApi|nvtx|hotkey",
    "--capture-range-end": r"none|stop|stop-shutdown|repeat(:\d+)?|repeat-shutdown(:\d+)?", "--nvtx-capture": ANY,
    "--mpi-impl": "openmpi|mpich", "--sample": "none|cpu|process-tree|system-wide", "--cpuctxsw": "none|process-tree|system-wide",
    "--pytorch": "(autograd-nvtx|autograd-shapes-nvtx|functions-trace|none)(,(autograd-nvtx|functions-trace))?",
    "--wait": "primary|all", "--kill": r"none|sigkill|sigterm|\d+", "--delay": r"\d+", "--duration": r"\d+",
}
NSYS_EXPORT = {"--type": "sqlite|parquetdir|arrow|arrowdir|hdf|json|jsonlines|text|info", "--output": ANY,
               "--force-overwrite": BOOLEAN}
FLAG = ""
NCU = {
    "--set": "roofline|detailed|full|basic|minimal|none|source|pmsampling|nvlink", "--metrics": r"[\w.,:]+", "--kernel-name": ANY,
    "--kernel-name-base": "function|demangled|mangled", "--launch-skip": r"\d+", "--launch-count": r"[1-9]\d*",
    "--clock-control": "base|none|reset", "--cache-control": "all|none",
    "--replay-mode": "kernel|application|range|app-range", "--target-processes": "all|application-only", "--export": ANY,
    "--force-overwrite": FLAG, "--log-file": ANY, "--nvtx": FLAG, "--import": ANY, "--csv": FLAG, "--print-units": "auto|base",
    "--page": "details|raw|source|session", "--print-details": "header|body|all", "--rename-kernels": "on|off|yes|no|true|false",
}
EXPORT_OF_RANK = "STAND_IN_EXPORTS"
"""The variable with a folder of rank0.sqlite, rank1.sqlite, ...: what exports are copies of."""
SLOW_EXPORT = "STAND_IN_SLOW_EXPORT"
"""The variable with a folder: exports leave `exporting0`, `exporting1`, ... there, and take two minutes."""


def install(folder: Path) -> None:
    """Write the programs nsys and ncu into a folder."""
    for name in ("nsys", "ncu"):
        script = folder / name
        script.write_text(f"#!{sys.executable} -S\n{Path(__file__).read_text(encoding='utf-8')}")
        script.chmod(0o755)


def refuse(tool: str, why: str) -> None:
    """End as the tool does for a command line that it does not know."""
    print(f"{tool}: {why}", file=sys.stderr)
    sys.exit(1)


def parsed(tool: str, grammar: dict[str, str], words: list[str], equals: bool) -> tuple[dict[str, str], list[str]]:
    """Return the options, and the words from the first that is none. equals: values follow =, else they are the next word."""
    options: dict[str, str] = {}
    words = list(words)
    while words and words[0].startswith("-"):
        name, sign, value = words.pop(0).partition("=")
        if name not in grammar:
            refuse(tool, f"unrecognised option {name!r}")
        if grammar[name] != FLAG and not sign:
            if equals or not words:
                refuse(tool, f"{name} needs =VALUE")
            value = words.pop(0)
        if grammar[name] != FLAG and not re.fullmatch(grammar[name], value):
            refuse(tool, f"the argument {value!r} for option {name} is invalid")
        options[name] = value
    return options, words


def without_macros(tool: str, path: str) -> str:
    """Return a path as the tool expands it; a % that begins no macro is an error."""
    meaning = {"%%": "%", "%h": os.uname().nodename, "%p": str(os.getpid()), "%n": "1", "%i": "1"}
    for macro in re.findall(r"%.?", path):
        if macro not in meaning:
            refuse(tool, f"unknown macro {macro} in {path}")
    return re.sub(r"%.", lambda found: meaning[found[0]], path)


def run(command: list[str]) -> int:
    """Run the application to its end, whatever signals come; return its exit code as a shell has it."""
    code = subprocess.Popen(command).wait()
    return code if code >= 0 else 128 - code


def nsys(words: list[str]) -> int:
    """Be nsys."""
    if words == ["--version"]:
        print("NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0")
        return 0
    if words == ["profile", "--help"]:
        for name, values in NSYS_PROFILE.items():
            print(f"\t{name}=\n\t   Possible values are " + ", ".join(f"'{v}'" for v in re.findall("[A-Za-z-]+", values)) + ".\n")
        return 0
    if words == ["export", "--help"]:
        print("\n".join(f"\t{name}=" for name in NSYS_EXPORT))
        return 0
    if words[:1] == ["export"]:
        options, (report,) = parsed("nsys", NSYS_EXPORT, words[1:], equals=True)
        source = os.environ.get(EXPORT_OF_RANK)
        rank = re.search(r"rank(\d+)", options["--output"])
        if not Path(report).is_file():
            refuse("nsys", f"no such report: {report}")
        if rank and SLOW_EXPORT in os.environ:
            Path(os.environ[SLOW_EXPORT], f"exporting{int(rank[1])}").touch()
            end = time.monotonic() + 120
            while time.monotonic() < end:
                time.sleep(0.1)
        if source and rank:
            shutil.copyfile(Path(source, f"rank{int(rank[1])}.sqlite"), options["--output"])
        else:
            Path(options["--output"]).write_text("an export\n")
        return 0
    options, command = parsed("nsys", NSYS_PROFILE, words[1:], equals=True)
    if words[:1] != ["profile"] or not command:
        refuse("nsys", "nothing to profile")
    code = run(command)
    Path(without_macros("nsys", options["--output"]) + ".nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 1.2\n")
    return code


def ncu(words: list[str]) -> int:
    """Be ncu."""
    if words == ["--version"]:
        print("NVIDIA (R) Nsight Compute\nVersion 2025.2.0.0 (build 35613519)")
        return 0
    if words == ["--help"]:
        print("\n".join(f"  {name} arg" for name in NCU))
        return 0
    options, command = parsed("ncu", NCU, words, equals=False)
    if "--import" in options:
        print('"ID","Kernel Name"\n"0","k"')
        return 0 if Path(options["--import"]).is_file() else 1
    if not command:
        refuse("ncu", "nothing to profile")
    code = run(command)
    Path(options["--log-file"]).write_text("==PROF== Disconnected\n")
    Path(without_macros("ncu", options["--export"]) + ".ncu-rep").write_bytes(b"NVR\0")
    return code


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda *_: None)   # no SIG_IGN: the application would inherit it
    sys.exit({"nsys": nsys, "ncu": ncu}[Path(sys.argv[0]).name](sys.argv[1:]))
