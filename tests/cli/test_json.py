"""Every answer as JSON is what nsightlens/pages/schemas says, and says itself what it is of."""

from __future__ import annotations

import importlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

import nsightlens as nl
from nsightlens.cli import COMMANDS
from nsightlens.pages import envelope
from nsightlens.schema import TABLES
from nsightlens.views import registry
from tests.cli.command_line import run
from tests.conftest import Shared
from tests.places import ROOT

SCHEMAS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "nsightlens/pages/schemas").glob("*.json")}
_KNOWN = Registry().with_resources([(schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()])
ASKED = {
    "show": ["show", "top_kernels", "how_many=3", "--tool", "nsys"], "sql": ["sql", "SELECT 1 AS a"], "views": ["views"],
    "view": ["views", "busy_time"], "doctor": ["doctor"], "cache": ["cache"], "summary": ["summary"], "plan-ncu": ["plan-ncu"],
    "compare-ranks": ["compare", "ranks"], "compare-runs": ["compare", "base", "fused"],
    "roofline": ["roofline"],
    "check": ["check", "--base", "base", "--candidate", "fused", "--on-undecided", "pass", "--force"],
    "baseline-list": ["baseline", "list"], "history": ["history"],
    "scan": ["scan", str(ROOT / "fixtures/resnet18_cpu")], "reconcile": ["reconcile", "x.csv", "a = b"],
}


def valid(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer as JSON; fails where it is not what its schema says."""
    schema = SCHEMAS[answer["schema"].removeprefix("nsightlens.")]
    for error in Draft202012Validator(schema, registry=_KNOWN).iter_errors(answer):
        raise AssertionError(f"{answer['schema']}: {error.json_path}: {error.message}")
    return answer


def _printing_data() -> Iterator[str]:
    """Yield the schema of each command that has --format."""
    for name in COMMANDS:
        found = importlib.import_module(f"nsightlens.cli.{name.replace('-', '_')}").command
        parts = found.commands if isinstance(found, click.Group) else {"": found}
        yield from (f"{name}-{part}".rstrip("-") for part, one in parts.items()
                    if any("--format" in param.opts and isinstance(param.type, click.Choice) and "json" in param.type.choices
                           for param in one.params))


def test_each_command_has_its_schema() -> None:
    assert {*_printing_data(), "view", "envelope"} == set(SCHEMAS) and set(ASKED) == set(SCHEMAS) - {"envelope"}
    assert all(schema["$id"] == f"{name}.json" for name, schema in SCHEMAS.items())
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


def _two_runs(folder: Path) -> None:
    for name in ("base", "fused"):
        nl.ingest(ROOT / "fixtures" / "simulated_resnet18_ddp", store=folder, run=name, jobs=1).close()


@pytest.mark.parametrize("name", ASKED)
def test_every_answer_is_what_its_schema_says(
    bundled_store: Path, shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("a,b\n1,2\n")
    of_two = name in ("compare-runs", "check")
    monkeypatch.setenv("NSIGHTLENS_BASELINES", str(tmp_path / "baselines"))
    monkeypatch.setenv("NSIGHTLENS_STORE", str(shared("base-and-fused", _two_runs) if of_two else bundled_store))
    if name == "baseline-list":
        run("baseline", "set", "main", str(bundled_store))
    answer = valid(json.loads(run(*ASKED[name], "-f", "json").stdout))
    assert answer["schema"] == f"nsightlens.{name}" and (answer.get("rows") or answer["tables"])
    again = json.loads(run(*shlex.split(answer["repeat"])[1:]).stdout)
    timeless = [key for key in answer if name not in ("doctor", "cache")]
    assert {key: again[key] for key in timeless} == {key: answer[key] for key in timeless}


def test_an_answer_says_what_it_is_of(bundled_store: Path) -> None:
    def ask(*words: str) -> dict[str, Any]:
        return valid(json.loads(run(*words, "--store", bundled_store, "-f", "json").stdout))

    shown = ask("show", "top_kernels", "tool=nsys")
    assert shown["window"] == {"tool": ["nsys"]} and shown["units"]["total_ns"] == "ns" and shown["units"]["time_pct"] == "%"
    assert ask("show", "step_breakdown", "--step", "2-3")["window"] == {"step": [2, 3]}
    empty = ask("show", "mpi_call_summary")
    assert not empty["rows"] and len(empty["not_recorded"]) == 1 and empty["window"] == {}
    assert ask("sql", "SELECT 1 AS a, NULL AS b, NULL AS c_ns FROM range(2)")["unknown"] == ["b", "c_ns"]
    cut = ask("show", "top_kernels", "--limit", "1")
    assert len(cut["rows"]) == 1 and len(cut["notes"]) == 1
    assert ask("show", "findings")["certainty"] == {"columns": ["confidence"], "text": None}
    judged = ask("summary")["window"]["judged"]
    assert {(each["tool"], each["windows"], each["steps"]) for each in judged} == {("nsys", 2, 6), ("kineto", 2, 6)}


def test_what_repeats_an_answer_has_no_secrets(bundled_store: Path) -> None:
    done = run("sql", "SELECT 'api_key=Planted77Planted77' AS a", "--store", bundled_store, "-f", "json")
    answer = json.loads(done.stdout)
    assert "Planted77" not in answer["repeat"] and "***" in answer["repeat"]


def test_every_column_with_a_unit_in_its_documentation_has_one() -> None:
    """Times, sizes and shares by their names: what ends in _ns is in ns, and so on."""
    columns = {name for view in registry.known().values() for name, _ in view.columns}
    of_tables = {column.name for table in TABLES.values() for column in table.columns}
    for ending, unit in (("_ns", "ns"), ("_bytes", "bytes"), ("_pct", "%"), ("bytes_per_s", "bytes/s"), ("_hz", "Hz")):
        named = [name for name in columns | of_tables if name.endswith(ending)]
        assert named and {envelope.unit_of(name) for name in named} == {unit}
    assert envelope.unit_of("streams") is None and envelope.unit_of("ns") == "ns" and envelope.unit_of("gbyte_per_s") == "GB/s"
