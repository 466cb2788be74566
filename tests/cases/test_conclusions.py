"""What is said of the cases of EXPECTED.tsv that are about conclusions: every row of these has a check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import nsightlens as nl
from tests.cases.test_expected import CASES, CONCLUSIONS

pytestmark = [pytest.mark.captures, pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not here")]
MS = 1_000_000


class Said(NamedTuple):
    """What is said of a capture. findings: (cause, subject); conditions: codes; nodes: ns of the first levels of the tree."""

    cause: str
    text: str
    findings: list[tuple[str, str | None]]
    conditions: list[str]
    nodes: dict[str, int]

    def causes(self) -> set[str]:
        """Return what leads, and the causes of the findings."""
        return {self.cause, *(cause for cause, _ in self.findings)}


_CHECKS: dict[str, Callable[[Said], bool]] = {
    "nsys/s15_one_block.sqlite": lambda said: ("low fill", "add") in said.findings and "1 block on 132 SMs" in said.text,
    "nsys/s16_problem_sizes.sqlite": lambda said: "clock" not in said.causes(),
    "nsys/s16c_thermal.sqlite": lambda said: "clock" in said.causes(),
    "nsys/s03_int64min.sqlite": lambda said: bool(said.conditions),
    "nsys/s05_mps_4proc_1gpu.sqlite": lambda said: said.nodes["computing"] > 999 * MS and said.nodes["idle"] < MS,
    "nsys/b2_cudaThreadSynchronize.sqlite": lambda said: said.cause == "computing",
    "nsys/b3_cudaFree.sqlite": lambda said: said.cause == "computing",
    "nsys/b4_overhead_before.sqlite": lambda said: said.causes() == {"computing"} and "profiler" not in said.text,
    "nsys/b5_first_launch.sqlite": lambda said: not said.causes() & {"launching", "host"} and said.nodes["first use"] == 16 * MS,
    "kineto/b6_work_before_window.pt.trace.json": lambda said: said.cause == "not recorded" and said.nodes["idle"] < MS,
    "kineto/b8_v100_tf32.pt.trace.json": lambda said: "FP32" in said.causes() and "TF32" not in said.text,
    "kineto/first": lambda said: said.cause == "start-up" and ("start-up", "cudaLaunchKernel") in said.findings,
    "kineto/firststep": lambda said: said.cause == "computing" and "2.000 ms" in said.text,
    "kineto/nohost_off": lambda said: "late rank" not in said.causes(),
}


def test_every_conclusion_has_a_check() -> None:
    assert _CHECKS.keys() == CONCLUSIONS


@pytest.mark.parametrize("case", _CHECKS)
def test_what_is_concluded(case: str, tmp_path: Path) -> None:
    with nl.ingest(CASES / case, store=tmp_path / "store", jobs=1) as store:
        rows = store.view("verdict").to_pylist()
        nodes = {row["node"]: row["total_ns"] for row in store.view("time_tree").to_pylist() if row["depth"] < 2}
    first = rows[0]
    said = Said(first["cause"], " ".join(row["text"] for row in rows),
                [(row["cause"], row["subject"]) for row in rows if row["kind"] == "finding"],
                [row["cause"] for row in rows if row["kind"] == "condition"], nodes)
    assert _CHECKS[case](said), said
