"""Run the notebooks in a fresh kernel; as a program, store what they then print (make notebooks)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.places import ROOT

FOLDER = ROOT / "notebooks"
_SHOWN = {"text/plain", "text/html", "text/markdown", "image/png"}


def paths() -> list[Path]:
    """Return the notebooks, in the order of reading."""
    return sorted(FOLDER.glob("*.ipynb"))


def prepare(folder: Path) -> Path:
    """Return a folder for notebooks below `folder`, with the fixtures beside it as in the repository."""
    (folder / "fixtures").symlink_to(FOLDER.parent / "fixtures")
    where = folder / "notebooks"
    where.mkdir()
    return where


def read(path: Path) -> NotebookNode:
    """Return the notebook as it is stored."""
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def run(path: Path, where: Path) -> NotebookNode:
    """Return the notebook with the outputs of a fresh kernel in the folder `where`. Raises CellExecutionError."""
    notebook = read(path)
    environment = {**os.environ, "IPYTHONDIR": str(where / ".ipython"), "COLUMNS": "100"}
    environment.pop("NSIGHTLENS_STORE", None)
    client = NotebookClient(notebook, timeout=120, record_timing=False, resources={"metadata": {"path": str(where)}})
    client.execute(env=environment)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                         "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells, 1):
        cell.id, cell.metadata = f"cell-{number}", {}
        for output in cell.get("outputs", []):
            if "data" in output:
                output["data"] = {kind: value for kind, value in output["data"].items() if kind in _SHOWN}
                output["metadata"] = {}
    return notebook


def main() -> None:
    """Run every notebook in a temporary folder and write it with its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        where = prepare(Path(folder))
        for path in paths():
            path.write_text(nbformat.writes(run(path, where)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
