"""nsightlens wrappers: copies the capture scripts to a machine that has no checkout."""

from __future__ import annotations

from pathlib import Path

import click

from nsightlens.errors import NsightlensError
from nsightlens.recording.wrappers import source
from nsightlens.terminal.output import echo
from nsightlens.terminal.quoting import shell_line
from nsightlens.views.figures import counted

_LEFT_OUT = ("__pycache__",)
_EXAMPLES: tuple[tuple[str | Path, ...], ...] = (
    (Path("capture_all.sh"), "--run-dir", "runs/base", "--", "python", Path("workloads/training.py"), "--precision", "bf16"),
    ("torchrun", "--standalone", "--nproc-per-node", "4", Path("torch_profiler.py"), "--run-dir", "runs/base", "train.py"),
    ("mpiexec", "-n", "4", Path("nsys_wrapper.sh"), "--run-dir", "runs/base", "python", "train.py"),
)
"""How the scripts are used: words, and files of the folder."""


@click.command("wrappers")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Replace files of the same name that differ.")
def command(folder: Path, force: bool) -> None:
    """Write the wrappers for nsys, ncu and torch.profiler, the example workloads and the job templates to DIR.

    They need bash, Python's standard library and, where they use it, torch; they do not need nsightlens. Existing files that
    differ (you edited them) are kept and the command exits with 1, unless --force is given.

    \b
    nsightlens wrappers my_wrappers
    """
    folder_of_ours = source()
    files = sorted(p for p in folder_of_ours.rglob("*") if p.is_file() and not any(part in _LEFT_OUT for part in p.parts))
    kept = [file for file in files if not _write(file, folder / file.relative_to(folder_of_ours), force)]
    written = counted(len(files) - len(kept), "file")
    echo(f"{written} in {folder}. Use them like this, then run nsightlens ingest runs/base:")
    for words in _EXAMPLES:
        echo(f"  {shell_line(*(folder / word if isinstance(word, Path) else word for word in words))}")
    echo(f"Documentation: {folder / 'README.md'}; job templates: {folder / 'jobs'}")
    if kept:
        names = ", ".join(str(file.relative_to(folder_of_ours)) for file in kept)
        raise NsightlensError(f"kept files that you edited: {names}. Use --force to replace them, or choose another folder")


def _write(source: Path, target: Path, force: bool) -> bool:
    """Copy one file; return False where another one is there and is kept. Scripts can be executed afterwards."""
    content = source.read_bytes()
    try:
        if target.is_file() and target.read_bytes() != content and not force:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o755 if content.startswith(b"#!") else 0o644)
    except OSError as exc:
        raise NsightlensError(f"{target}: cannot be written ({exc.strerror}). Choose another folder") from exc
    return True
