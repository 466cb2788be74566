"""A rule that answers differently has a new version: else stores made before would never be read again."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from tests.store.rule_answers import RULES, answers

RECORDED = Path(__file__).with_name("rule_answers.tsv")


@pytest.fixture(scope="module")
def found(bundled_store: Path) -> dict[str, tuple[int, str]]:
    with nl.open(bundled_store) as store:
        return answers(store)


@pytest.mark.parametrize("rule", RULES)
def test_another_answer_is_another_version(rule: str, found: dict[str, tuple[int, str]]) -> None:
    lines = [line.split("\t") for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    recorded = {name: (int(version), digest) for name, version, digest in lines}
    version, digest = found[rule]
    same_version, same_answer = version == recorded[rule][0], digest == recorded[rule][1]
    record = "python -m tests.store.rule_answers > tests/store/rule_answers.tsv"
    assert same_answer or not same_version, (
        f"{rule} answers differently for the bundled run. Raise its version (store/rules.py), unless the fixture changed; then: "
        f"{record}")
    assert same_version, f"{rule} has a new version; record what it answers: {record}"
