"""The inputs: made once, kept under a folder by a key of what they are made of, each with what a reader must find in it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import kineto_input, names, ncu_input, nsys_input

REPOSITORY = Path(__file__).resolve().parents[1]
DEFAULT_TRACE = REPOSITORY / "fixtures/simulated_resnet18_ddp/torch/rank0.pt.trace.json.gz"


def default_folder() -> Path:
    """Return where inputs are kept unless told otherwise: below $TMPDIR."""
    return Path(tempfile.gettempdir()) / "nsightlens-bench"


@dataclass(frozen=True, slots=True)
class Input:
    """A made capture: the run directory to ingest, its one file, and what a reader must find."""

    run_dir: Path
    file: Path
    truth: dict[str, int]


def kineto(folder: Path, source: Path, size_bytes: int) -> Input:
    """Return a Kineto trace of about `size_bytes`, replicated from `source`."""
    content = hashlib.sha256(source.read_bytes()).hexdigest()
    return _made(folder, "kineto", [content, str(size_bytes)], [kineto_input.__file__], "rank0.pt.trace.json",
                 lambda path: kineto_input.replicate(source, path, size_bytes))


def nsys(folder: Path, kernels: int, kernel_names: int, launches: bool = True) -> Input:
    """Return an nsys SQLite export of so many kernels and distinct names, with or without their launching calls."""
    return _made(folder, "nsys", [str(kernels), str(kernel_names), str(launches)], [nsys_input.__file__, names.__file__],
                 "report.sqlite", lambda path: nsys_input.write(path, kernels, kernel_names, launches))


def ncu_wide(folder: Path, launches: int) -> Input:
    """Return a raw page of ncu, a column per metric."""
    return _made(folder, "ncu-wide", [str(launches)], [ncu_input.__file__, names.__file__], "report.raw.csv",
                 lambda path: ncu_input.write_wide(path, launches))


def ncu_details(folder: Path, launches: int) -> Input:
    """Return a details page of ncu, a row per metric."""
    return _made(folder, "ncu-details", [str(launches)], [ncu_input.__file__, names.__file__], "report.details.csv",
                 lambda path: ncu_input.write_details(path, launches))


def _made(
    folder: Path, kind: str, parameters: list[str], sources: list[str], name: str, make: Callable[[Path], dict[str, int]],
) -> Input:
    """Return the input, made now where it is not there yet; a half-made one never shows under its key."""
    digest = hashlib.sha256("\0".join(parameters).encode())
    for source in sources:
        digest.update(Path(source).read_bytes())
    place = folder / f"{kind}-{digest.hexdigest()[:12]}"
    if not place.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{place.name}.{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        (draft / "run").mkdir(parents=True)
        truth = make(draft / "run" / name)
        (draft / "truth.json").write_text(json.dumps(truth))
        draft.rename(place)
    found = Input(place / "run", place / "run" / name, json.loads((place / "truth.json").read_text()))
    _warm(found.file)
    return found


def _warm(path: Path) -> None:
    """Read the file once, so that no program pays for the first read from disk."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass
