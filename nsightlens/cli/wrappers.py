"""nsightlens wrappers: copies the capture scripts to a machine that has no checkout."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from nsightlens.errors import NsightlensError, StoreError, UsageError
from nsightlens.recording.wrappers import source
from nsightlens.store import no_links
from nsightlens.terminal.output import echo
from nsightlens.terminal.quoting import shell_line
from nsightlens.views.figures import counted

_LEFT_OUT = ("__pycache__",)
_PRINTED = ("nsys", "ncu")
_EXAMPLES: tuple[tuple[str | Path, ...], ...] = (
    (Path("capture_all.sh"), "--run-dir", "runs/base", "--", "python", Path("workloads/training.py"), "--precision", "bf16"),
    ("torchrun", "--standalone", "--nproc-per-node", "4", Path("torch_profiler.py"), "--run-dir", "runs/base", "train.py"),
    ("mpiexec", "-n", "4", Path("nsys_wrapper.sh"), "--run-dir", "runs/base", "python", "train.py"),
)
"""How the scripts are used: words, and files of the folder."""


@click.command("wrappers")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--print", "printed", type=click.Choice(_PRINTED),
              help="Print one script for this profiler that needs no others, to paste or to save.")
@click.option("--force", is_flag=True, help="Replace files of the same name that differ.")
def command(folder: Path | None, printed: str | None, force: bool) -> None:
    """Write the wrappers for nsys, ncu and torch.profiler, the example workloads and the job templates to DIR.

    They need bash, Python's standard library and, where they use it, torch; they do not need nsightlens. Existing files that
    differ (you edited them) are kept and the command exits with 1, unless --force is given.

    \b
    nsightlens wrappers my_wrappers
    nsightlens wrappers --print nsys
    """
    if (folder is None) == (printed is None):
        raise UsageError("wrappers needs a folder to write to, or --print nsys or ncu for one script")
    if printed is not None:
        echo(_one_file(printed), newline=False)
    if folder is not None:
        _write_all(folder, force)


def _one_file(tool: str) -> str:
    """Return the script that needs no others, for one profiler."""
    return (source() / "one_file.sh").read_text(encoding="utf-8").replace("\ntool=nsys\n", f"\ntool={tool}\n")


def _write_all(folder: Path, force: bool) -> None:
    """Write the wrappers to a folder, and print how to use them. Raises NsightlensError where edited files are kept."""
    folder_of_ours = source()
    files = [file.relative_to(folder_of_ours) for file in sorted(folder_of_ours.rglob("*"))
             if file.is_file() and not any(part in _LEFT_OUT for part in file.parts)]
    kept = [file for file in files if not _write(folder_of_ours, file, folder, force)]
    written = counted(len(files) - len(kept), "file")
    echo(f"{written} in {folder}. Use them like this, then run nsightlens ingest runs/base:")
    for words in _EXAMPLES:
        echo(f"  {shell_line(*(folder / word if isinstance(word, Path) else word for word in words))}")
    echo(f"Documentation: {folder / 'README.md'}; job templates: {folder / 'jobs'}")
    if kept:
        names = ", ".join(map(str, kept))
        raise NsightlensError(f"kept files that you edited: {names}. Use --force to replace them, or choose another folder")


def _write(source: Path, path: Path, folder: Path, force: bool) -> bool:
    """Copy a file of `source`; return False where another is there, or a link, and is kept. Scripts can be executed afterwards.

    Nothing is written through a link: the copy takes its place in `folder` by a rename.
    """
    content = (source / path).read_bytes()
    target = folder / path
    try:
        if not force and os.path.lexists(target) and (target.is_symlink() or target.read_bytes() != content):
            return False
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                os.fchmod(descriptor, 0o755 if content.startswith(b"#!") else 0o644)
            no_links.move(Path(draft), folder, path.as_posix())
        finally:
            Path(draft).unlink(missing_ok=True)
    except StoreError as exc:
        raise NsightlensError(f"{target.parent}: a link, or no folder, and nothing is written elsewhere. "
                              "Move it away, or choose another folder") from exc
    except OSError as exc:
        raise NsightlensError(f"{target}: cannot be written ({exc.strerror}). Choose another folder") from exc
    return True
