"""What pyproject.toml declares is what the package is: one version, every import a dependency, public names that resolve."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

import nsightlens as nl
from nsightlens.doctor.installation import EXTRAS
from nsightlens.views import registry
from tests.lower_bounds import PROJECT, pins
from tests.places import ROOT

BUILT_FROM = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "docs/glossary.md")
"""Beside nsightlens/ and wrappers/."""

_DISTRIBUTIONS = {"adbc_driver_manager": "adbc-driver-sqlite", "mpl_toolkits": "matplotlib", "hta": "HolisticTraceAnalysis"}
"""Of modules whose distribution has another name, or that come with one."""


def _imported() -> set[str]:
    """Return the distributions that modules of the package import, wherever in them."""
    found = set()
    for path in (ROOT / "nsightlens").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            found |= {name.split(".")[0] for name in names}
    third = found - sys.stdlib_module_names - {"nsightlens"}
    return {_DISTRIBUTIONS.get(name, name.replace("_", "-")) for name in third}


def test_every_import_is_a_declared_dependency() -> None:
    names = ("hta", "workloads", "dask", "mpi", "mcp", "remote")
    extras = {requirement for name in names for requirement in PROJECT["optional-dependencies"][name]}
    declared = {requirement.partition(">=")[0] for requirement in [*PROJECT["dependencies"], *extras]}
    missing = _imported() - declared
    assert not missing, f"imported, but not declared: add {missing} to dependencies in pyproject.toml, then run: make test-lowest"


def test_every_dependency_is_imported() -> None:
    unused = {requirement.partition(">=")[0] for requirement in PROJECT["dependencies"]} - _imported() - {"pandas"}  # to_pandas()
    assert not unused, f"declared, but not imported: take {unused} out of dependencies in pyproject.toml"


def test_every_dependency_has_a_lower_bound() -> None:
    assert len(pins()) == len(set(pins())) > len(PROJECT["dependencies"])


def test_extras_that_messages_and_pages_name_exist() -> None:
    texts = [*(ROOT / "nsightlens").rglob("*.py"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), ROOT / "pyproject.toml"]
    named = {name for path in texts for name in re.findall(r"nsightlens\[([\w-]+)\]", path.read_text(encoding="utf-8"))}
    assert named and named <= set(PROJECT["optional-dependencies"]), f"no such extra in pyproject.toml: {named}"


def test_the_container_copies_what_a_wheel_is_built_from() -> None:
    lines = (ROOT / "docs" / "Containerfile").read_text(encoding="utf-8").splitlines()
    copied = [word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]]
    assert sorted(copied) == sorted([*BUILT_FROM, "nsightlens", "wrappers"]), "docs/Containerfile: copy what a wheel needs"
    images = {line.split()[1] for line in lines if line.startswith("FROM ")}
    newest = [text for text in PROJECT["classifiers"] if text.startswith("Programming Language :: Python :: 3.")][-1]
    assert images == {f"python:{newest.rpartition(' ')[2]}-slim"}


def test_the_page_on_installing_weighs_every_package() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    missing = {name for one in PROJECT["dependencies"] if f"{(name := one.partition('>=')[0])}" not in page}
    assert not missing, f"docs/install.md: python -m benchmarks.installed weighs {missing}; say what for"
    assert all(f"`{name}`" in page for name in EXTRAS), "docs/install.md names every extra for users"


def test_there_is_one_version() -> None:
    assert "version" not in PROJECT and PROJECT["dynamic"] == ["version"], "the version is nsightlens/__init__.py's, nowhere else"
    done = subprocess.run([sys.executable, "-m", "nsightlens", "--version"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split()[-1] == nl.__version__


def test_the_versions_of_python_are_consistent() -> None:
    lowest = PROJECT["requires-python"].removeprefix(">=")
    prefix = "Programming Language :: Python :: 3."
    listed = ["3." + text.removeprefix(prefix) for text in PROJECT["classifiers"] if text.startswith(prefix)]
    assert lowest == listed[0]
    assert listed == sorted(listed, key=lambda text: int(text.partition(".")[2]))
    (tested,) = re.findall(r"python: \[(.+)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert re.findall(r"[\d.]+", tested) == listed


@pytest.mark.parametrize("name", nl.__all__)
def test_public_names_resolve(name: str) -> None:
    assert getattr(nl, name) is not None
    assert name in dir(nl)


def _parameters(view: nl.View) -> tuple[nl.Param, ...]:
    return view.params


def test_what_a_user_catches_and_annotates_is_public() -> None:
    """mypy checks the annotations (make lint); the errors are those that the functions raise."""
    assert isinstance(_parameters(registry.load()["top_kernels"])[0], nl.Param)
    with pytest.raises(nl.StoreError):
        nl.open(ROOT / "no store here")
    with pytest.raises(nl.UnknownFormatError):
        nl.read(ROOT / "README.md")
    with pytest.raises(nl.UsageError):
        nl.read(ROOT / "no capture here")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing_such'"):
        getattr(nl, "nothing_such")  # noqa: B009 - mypy knows that it is not there
