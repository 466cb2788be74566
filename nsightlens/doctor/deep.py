"""What a recording of one kernel shows: nsys and ncu are started as the wrappers start them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from nsightlens.doctor.fitness import BAD, GOOD, NOTE, CheckResult
from nsightlens.terminal.quoting import shell_line

_CHECK_SECONDS = 60   # more than the wrappers' own: here nobody waits for a whole job
_SECONDS = 300


def record_one_kernel(wrappers: Path, run_dir: Path | None = None) -> Iterator[CheckResult]:
    """Yield whether nsys and ncu can record a kernel here, from --self-check of their wrappers. What they write is deleted.

    wrappers: the folder of the wrappers. run_dir: where captures are to lie [a temporary folder].
    """
    with TemporaryDirectory(prefix="nsightlens-") as temporary:
        place = run_dir if run_dir is not None and run_dir.is_dir() else Path(temporary)
        for tool in ("nsys", "ncu"):
            yield _self_check(tool, wrappers, place, Path(temporary, f"answer-{tool}"))


def _self_check(tool: str, wrappers: Path, place: Path, answer: Path) -> CheckResult:
    subject = f"{tool} recording"
    if shutil.which(tool) is None:
        return CheckResult(subject, NOTE, f"not tried: {tool} is not on PATH", "See above", usable=False)
    own = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"   # this nsightlens reads the capture back
    words = ["bash", str(wrappers / f"{tool}_wrapper.sh"), f"--self-check={_CHECK_SECONDS}", "--run-dir", str(place)]
    try:
        env = {**os.environ, "PATH": own, "NSIGHTLENS_SELF_CHECK_ANSWER": str(answer)}
        done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as exc:
        return CheckResult(subject, BAD, f"the self-check did not end: {exc}", ("Run it by hand: ", shell_line(*words)),
                           usable=False)
    if not answer.exists():
        said = (done.stdout.strip() or done.stderr.strip() or f"no answer, code {done.returncode}").splitlines()[-1]
        return CheckResult(subject, BAD, said, ("Run it by hand: ", shell_line(*words)), usable=False)
    found, *remedy, _ = answer.read_text(encoding="utf-8", errors="replace").split("\0")
    return CheckResult(subject, BAD, found, remedy[0], usable=False) if remedy else CheckResult(subject, GOOD, found)
