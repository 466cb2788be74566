"""nsightlens hta: an interactive Python in which Holistic Trace Analysis has read a run's PyTorch traces, or prints its code."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from nsightlens.cli.complete import store_value
from nsightlens.cli.output import store_option
from nsightlens.discovery.remote import is_url
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.terminal.output import echo
from nsightlens.terminal.printable import printable
from nsightlens.terminal.quoting import Verbatim

_FILES = """
SELECT f.path, coalesce(f.window_index, 0) AS window_index, p.rank
FROM files AS f
LEFT JOIN (SELECT profile_id, min(rank) AS rank FROM processes GROUP BY profile_id) AS p ON f.profile_id = p.profile_id
WHERE f.run = ? AND f.tool = 'kineto' AND f.outcome IN ('read', 'partial')
ORDER BY p.rank NULLS LAST, window_index, f.path"""
_SNIPPET = """from hta.trace_analysis import TraceAnalysis

trace_files = {{
{files}
}}
trace = TraceAnalysis(trace_files=trace_files)
"""


@click.command("hta")
@click.argument("run", shell_complete=store_value("run"))
@click.option("--window", type=int, default=0, show_default=True, help="Capture window to read from each rank.")
@click.option("--print", "only_print", is_flag=True, help="Print the Python code instead of running it.")
@store_option
def command(run: str, window: int, only_print: bool, store: Path | None) -> None:
    """Open the PyTorch traces of RUN in Holistic Trace Analysis, as `trace` in an interactive Python.

    The files are read from the paths they had at ingest, and are not changed.

    \b
    nsightlens hta base
    nsightlens hta base --print > analysis.py
    """
    import nsightlens as nl

    with nl.open(store) as opened:
        runs = opened.sql("SELECT DISTINCT run FROM profiles WHERE tool = 'kineto' ORDER BY run")["run"].to_pylist()
        rows = opened.sql(_FILES, [run]).to_pylist()
    if not rows:
        raise UsageError(f"run {run} has no PyTorch traces in the store; those that have: {', '.join(runs) or 'none'}",
                         subject="run", value=run, choices=runs)
    snippet = _SNIPPET.format(files="\n".join(f"    {rank}: {path!r}," for rank, path in _by_rank(rows, window).items()))
    if only_print:
        echo(snippet, newline=False)
        return
    if find_spec("hta") is None:
        raise NsightlensError(("HTA is not installed here: use --print and run the code elsewhere, or ",
                               Verbatim("pip install 'nsightlens[hta]'")))
    echo("Reading with HTA; then: trace.get_temporal_breakdown(), help(trace), exit()", err=True)
    sys.exit(subprocess.run([sys.executable, "-i", "-c", snippet], check=False).returncode)


def _by_rank(rows: list[dict[str, Any]], window: int) -> dict[int, str]:
    """Return {rank: path} for HTA, which takes one trace per rank. Raises NsightlensError for what it could not take."""
    files: dict[int, str] = {}
    here = [row for row in rows if row["window_index"] == window]
    if not here:
        known = sorted({row["window_index"] for row in rows})
        raise UsageError(f"no window {window}; there are {', '.join(map(str, known))}", subject="window", value=window,
                         choices=known)
    for row in here:
        rank = row["rank"]
        if rank is None:
            rank = max(files, default=-1) + 1
            echo(f"{printable(row['path'])}: rank unknown; passed to HTA as rank {rank}", err=True)
        if rank in files:
            echo(f"{printable(row['path'])}: skipped, a second trace of rank {rank}", err=True)
            continue
        files[rank] = row["path"]
    far = [path for path in files.values() if is_url(path)]
    if far:
        raise NsightlensError(f"{far[0]}: HTA reads local files only: copy the run to a disk, and ingest it from there")
    gone = [path for path in files.values() if not Path(path).is_file()]
    if gone:
        more = f" and {len(gone) - 1} more" if gone[1:] else ""
        raise NsightlensError(f"{gone[0]}{more}: not found at the path it was ingested from; ingest the run again from its "
                              "present folder")
    odd = [path for path in files.values() if not path.endswith((".json", ".gz"))]
    if odd:
        raise NsightlensError(f"{odd[0]}: HTA takes only names that end in .json or .gz")
    if len(rows) > len(here):
        echo(f"window {window} of {len({row['window_index'] for row in rows})}; others with --window", err=True)
    return files
