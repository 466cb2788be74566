"""The command line in the process of the test: the streams and the exit code of nsightlens.cli.main, without a second Python."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsightlens.cli import main


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str | Path, stdin: str | None = None) -> Done:
    """Run `nsightlens ARGUMENTS`. What main() lets through is raised here too."""
    with CliRunner().isolation(stdin) as (out, err, _), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sys, "argv", ["nsightlens", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as exc:
            assert isinstance(exc.code, int)
            code = exc.code
        sys.stdout.flush()
        sys.stderr.flush()
        return Done(code, out.getvalue().decode(), err.getvalue().decode())
