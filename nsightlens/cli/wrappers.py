"""nsightlens wrappers: copies the capture scripts to a machine that has no checkout."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from nsightlens.errors import NsightlensError
from nsightlens.recording.wrappers import source
from nsightlens.views.figures import counted

_LEFT_OUT = ("__pycache__",)


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
    path = shlex.quote(str(folder))
    written = counted(len(files) - len(kept), "file")
    click.echo(f"{written} in {folder}. Use them like this, then run nsightlens ingest runs/base:")
    click.echo(f"  {path}/capture_all.sh --run-dir runs/base -- python {path}/workloads/training.py --precision bf16\n"
               f"  torchrun --standalone --nproc-per-node 4 {path}/torch_profiler.py --run-dir runs/base train.py\n"
               f"  mpiexec -n 4 {path}/nsys_wrapper.sh --run-dir runs/base python train.py\n"
               f"Documentation: {path}/README.md; job templates: {path}/jobs")
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
