"""nsightlens wrappers: out of a checkout, and out of a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from shutil import copytree, ignore_patterns

from click.testing import CliRunner

from nsightlens.cli.wrappers import command

ROOT = Path(__file__).resolve().parents[2]


def _files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}


def test_all_files_come_out_and_scripts_can_be_run(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path / "my wrappers")])
    assert done.exit_code == 0, done.output
    out = tmp_path / "my wrappers"
    assert _files(out) == _files(ROOT / "wrappers")
    for path in out.rglob("*"):
        if path.is_file():
            assert os.access(path, os.X_OK) == path.read_bytes().startswith(b"#!"), path
    assert f"'{out}'/capture_all.sh" in done.output


def test_an_edited_file_is_kept_unless_forced(tmp_path: Path) -> None:
    CliRunner().invoke(command, [str(tmp_path)])
    edited = tmp_path / "README.md"
    edited.write_text("mine")
    refused = CliRunner().invoke(command, [str(tmp_path)])
    assert refused.exit_code == 1
    assert "README.md" in str(refused.exception)
    assert edited.read_text() == "mine"
    assert CliRunner().invoke(command, [str(tmp_path), "--force"]).exit_code == 0
    assert edited.read_text() != "mine"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run([sys.executable, "-m", "nsightlens", "wrappers", str(tmp_path / "file" / "x")], capture_output=True,
                          text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr and "Traceback" not in done.stderr


def test_the_wheel_holds_them(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for name in ("nsightlens", "wrappers"):
        copytree(ROOT / name, source / name, ignore=ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    assert _files(tmp_path / "site" / "nsightlens" / "_wrappers") == _files(ROOT / "wrappers")
    program = "import sys; sys.argv[1:] = ['wrappers', 'out']\nfrom nsightlens.cli import main\nmain()"
    env = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    subprocess.run([sys.executable, "-c", program], check=True, env=env, cwd=tmp_path, capture_output=True)
    assert _files(tmp_path / "out") == _files(ROOT / "wrappers")
