"""Families: reviewed names keep theirs, every rule is needed, and real captures leave little time unclassified."""

from __future__ import annotations

import re

import pytest

from nsightlens.names.families import FAMILIES, LONGEST, OTHER
from nsightlens.names.kernel_names import family, kernel_key
from nsightlens.names.key import parse
from tests.names import corpus

GOLDEN = [tuple(line.split("\t")) for line in (corpus.HERE / "golden_families.tsv").read_text().splitlines()[2:]]
KNOWN = {"gemm", "convolution", "attention", "normalization", "reduction", "elementwise", "optimizer", "collective", "memory"}

# Captures whose kernels do not tell in their names what they do.
UNTOLD = {
    "nsys/hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite": "CloverLeaf: stencils and fluxes of a hydrodynamics code",
    "nsys/bwyogatama__Mordred-Deprecated__report1_2021-07.sqlite": "Mordred: joins of a database",
    "nsys/bwyogatama__Mordred-Deprecated__report1_2021-12.sqlite": "Mordred: joins of a database",
    "nsys/RajaATAli__SC23_Programming-Your-GPU-with-OpenMP_Tutorial__report3.sqlite": "OpenMP: the line of a target region",
    "kineto/pytorch__kineto__docs_after_fix_trace.json": "its one kernel is called Kernel",
}


@pytest.mark.parametrize(("expected", "name"), GOLDEN, ids=[name[:60] for _, name in GOLDEN])
def test_reviewed_names(expected: str, name: str) -> None:
    assert family(name) == expected
    assert family(name, kernel_key(name)) == expected


def test_the_table_names_only_known_families() -> None:
    assert {row[0] for row in FAMILIES} == KNOWN
    assert all(comment for _, _, comment in FAMILIES)


def test_every_rule_decides_some_reviewed_name() -> None:
    used = set()
    for _, name in GOLDEN:
        parsed = parse(name)
        for number, (_, pattern, _) in enumerate(FAMILIES):
            if re.search(pattern, "@" + parsed.scope if pattern.startswith("@") else parsed.key):
                used.add(number)
                break
    assert [FAMILIES[n][2] for n in range(len(FAMILIES)) if n not in used] == []


@pytest.mark.captures
def test_the_tools_agree_on_the_family() -> None:
    corpus.needed()
    found: dict[str, set[str]] = {}
    for capture, names in corpus.captures().items():
        for name in names:
            found.setdefault(kernel_key(name, corpus.tool_of(capture)), set()).add(family(name))
    assert {key: families for key, families in found.items() if len(families) > 1} == {}


@pytest.mark.captures
def test_little_time_of_a_capture_is_unclassified() -> None:
    corpus.needed()
    shares = {}
    for capture, names in corpus.captures().items():
        total = sum(names.values())
        if total:
            shares[capture] = sum(ns for name, ns in names.items() if family(name) == OTHER) / total
    assert len(shares) >= 50
    assert {capture for capture, share in shares.items() if share > 0.05} == set(UNTOLD)


def test_only_the_beginning_of_a_key_is_looked_at() -> None:
    assert family("f<" + "a, " * LONGEST + "gemm>") == OTHER
    assert family("f<a, gemm>") == "gemm"
