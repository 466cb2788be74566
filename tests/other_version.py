"""Another version of nsightlens: a copy of the package that a test edits, run as a program of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.places import ROOT


class OtherVersion:
    """A copy of the package in `folder`, with a cache of its own unless one is given."""

    def __init__(self, folder: Path, cache: Path | None = None) -> None:
        self.package = folder / "nsightlens"
        self._folder = folder
        self._cache = cache or folder / "cache"
        shutil.copytree(ROOT / "nsightlens", self.package, ignore=shutil.ignore_patterns("__pycache__"))

    def edit(self, file: str, before: str, after: str) -> OtherVersion:
        """Replace a text that must stand in a file of the package."""
        path = self.package / file
        text = path.read_text(encoding="utf-8")
        assert before in text, f"{file} no longer holds {before!r}: change the test"
        path.write_text(text.replace(before, after), encoding="utf-8")
        return self

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run `nsightlens` with these arguments; it must not fail with a traceback."""
        environment = {**os.environ, "PYTHONPATH": str(self._folder), "XDG_CACHE_HOME": str(self._cache)}
        done = subprocess.run([sys.executable, "-m", "nsightlens", *map(str, arguments)], cwd=self._folder, env=environment,
                              capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done
