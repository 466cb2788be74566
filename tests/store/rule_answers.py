"""What each rule answers for the bundled run, as a digest.

    python -m tests.store.rule_answers > tests/store/rule_answers.tsv
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import nsightlens as nl
from nsightlens.store.rules import VERSIONS
from nsightlens.store.store import Store
from tests.places import ROOT

_RAW = ("SELECT rank, start_ns, duration_ns, name, mangled_name, grid_x, block_x, stream, context, correlation_id, "
        "registers_per_thread, shared_bytes, metrics FROM kernels WHERE tool = '{tool}'")
RULES = {
    "nsys": _RAW.format(tool="nsys"),
    "kineto": _RAW.format(tool="kineto"),
    "ncu": _RAW.format(tool="ncu"),
    "names": "SELECT DISTINCT tool, name, mangled_name, short_name, kernel_key, family, tensor_cores FROM kernels",
    "launches": "SELECT tool, rank, start_ns, launch_index, nth, queue_delay_ns FROM kernels",
    "attribution": "SELECT tool, rank, start_ns, step, phase, op, op_shapes, module, range_path FROM kernels",
    "overruns": "SELECT tool, rank, start_ns, overrun_ns FROM kernels",
    "matching":
        "SELECT run, rank, tool, other_tool, grade, evidence, count(*) AS pairs FROM matches GROUP BY ALL",
}
"""Each rule, and the stored columns that show what it answers."""


def answers(store: Store) -> dict[str, tuple[int, str]]:
    """Return the version of each rule, and a digest of what it answers for the rows of `store`."""
    found = {}
    for rule, query in RULES.items():
        rows = sorted(map(repr, store.sql(query).to_pylist()))
        assert rows, f"the bundled run shows nothing of {rule}"
        found[rule] = VERSIONS[rule], hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, nl.ingest(ROOT / "fixtures/simulated_resnet18_ddp", store=Path(folder)) as made:
        for rule, (version, digest) in answers(made).items():
            print(rule, version, digest, sep="\t")
