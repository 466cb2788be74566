"""nsightlens doctor, on machines made of stub programs and a /proc of their own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsightlens.cli.doctor import command
from nsightlens.doctor import fitness, installation
from nsightlens.doctor.fitness import BAD, GOOD, NOTE, CheckResult, Machine, examine, verdict
from tests.captures import kineto
from tests.terminal.whole_commands import recorded, too_long

TORCH = '{"version": "2.13.0", "cuda": "13.0", "seen": true, "kineto": true, "nvtx": true}'


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return folder


def stub(folder: Path, name: str, says: str, code: int = 0) -> None:
    script = folder / name
    script.write_text(f"#!/bin/sh\nwhile read -r line; do echo \"$line\"; done <<'END'\n{says}\nEND\nexit {code}\n")
    script.chmod(0o755)


def machine(root: Path, **files: str) -> Machine:
    for name, text in files.items():
        target = root / "proc" / name.replace("__", "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return Machine(root)


def by_subject(findings: list[CheckResult]) -> dict[str, CheckResult]:
    return {f.subject: f for f in findings}


def test_a_machine_with_nothing(path: Path, tmp_path: Path) -> None:
    findings = list(examine(tmp_path / "run", machine(tmp_path / "root")))
    found = by_subject(findings)
    assert [found[s].state for s in ("GPU", "nsys", "ncu", "GPU counters", "torch")] == [NOTE, NOTE, NOTE, NOTE, BAD]
    assert all(f.fix for f in findings if f.state != GOOD)
    assert not any(f.fix for f in findings if f.state == GOOD)
    assert verdict(findings) == "No profiler can record here; captures from elsewhere can be read."


def test_a_machine_with_everything(path: Path, tmp_path: Path) -> None:
    stub(path, "nvidia-smi", "NVIDIA A100-SXM4-40GB, 570.1, Disabled\nNVIDIA A100-SXM4-40GB, 570.1, Disabled")
    stub(path, "nsys", "NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0")
    stub(path, "ncu", "Version 2025.2.0.0 (build 35613519)")
    stub(path, "python", TORCH)
    files = {"driver__nvidia__params": "A: 1\nRmProfilingAdminOnly: 0\n", "sys__kernel__perf_event_paranoid": "1\n"}
    root = machine(tmp_path / "root", **files)
    findings = list(examine(None, root))
    found = by_subject(findings)
    assert found["GPU"].found == "2 x NVIDIA A100-SXM4-40GB, driver 570.1"
    assert (found["nsys"].found, found["ncu"].found) == ("Nsight Systems 2025.3.1.90", "Nsight Compute 2025.2.0.0")
    assert {f.state for f in findings if f.subject not in ("RUN_DIR", "TMPDIR", "processors")} == {GOOD}
    assert verdict(findings) == "Can record here: nsys, ncu, torch.profiler."


def test_counters_for_administrators_only(path: Path, tmp_path: Path) -> None:
    root = machine(tmp_path / "a", driver__nvidia__params="RmProfilingAdminOnly: 1\n", self__status="CapEff:\t0000000000000000\n")
    found = fitness.counter_finding(root, True)
    assert found.state == BAD and "ERR_NVGPUCTRPERM" in found.found and "NVreg_RestrictProfilingToAdminUsers=0" in found.fix
    root = machine(tmp_path / "b", driver__nvidia__params="RmProfilingAdminOnly: 1\n", self__status="CapEff:\t000001ffffffffff\n")
    assert fitness.counter_finding(root, True).state == GOOD


def test_ncu_is_out_where_the_counters_are(path: Path, tmp_path: Path) -> None:
    findings = [CheckResult(s, GOOD, "") for s in ("GPU", "nsys", "ncu", "RUN_DIR", "TMPDIR")]
    findings += [CheckResult("GPU counters", BAD, "", "ask", usable=False),
                 CheckResult("torch", NOTE, "", "activate", usable=False)]
    assert verdict(findings) == "Can record here: nsys."


def test_dcgm_holds_the_counters(path: Path, tmp_path: Path) -> None:
    root = machine(tmp_path / "root", **{"17__comm": "bash\n", "42__comm": "nv-hostengine\n"})
    assert [f.fix for f in examine(None, root) if "DCGM" in f.found and "dcgmi profile --pause" in f.fix]


def test_a_tool_beside_the_path_is_found(path: Path, tmp_path: Path) -> None:
    for version in ("2024.1.1", "2025.3.1"):
        folder = tmp_path / "root" / "opt" / "nvidia" / "nsight-compute" / version
        folder.mkdir(parents=True)
        stub(folder, "ncu", "x")
    found = fitness.tool_finding("ncu", Machine(tmp_path / "root"), True)
    assert found.state == BAD and found.fix.startswith("export PATH=") and "2025.3.1" in found.fix


def test_a_tool_is_missed_where_a_gpu_is(path: Path, tmp_path: Path) -> None:
    found = {gpu: fitness.tool_finding("nsys", Machine(tmp_path), gpu) for gpu in (True, False)}
    assert (found[True].state, found[False].state) == (BAD, NOTE)
    assert "module" in found[True].fix and ".nsys-rep" in found[False].fix


def test_a_tool_that_does_not_start(path: Path, tmp_path: Path) -> None:
    stub(path, "nsys", "error: libfoo.so is missing", code=127)
    found = fitness.tool_finding("nsys", Machine(tmp_path), True)
    assert found.state == BAD and "libfoo.so is missing" in found.found


@pytest.mark.parametrize(("says", "found"), [
    ("\t--output=\n\t   a path\n\t--pytorch=\n\t   Possible values are 'autograd-nvtx',\n\t   'functions-trace' or 'none'.\n"
     "\t--sample=\n",
     [(GOOD, "annotates PyTorch: nsys_wrapper.sh --pytorch autograd-nvtx,functions-trace")]),
    ("\t--output=\n\t--pytorch=\n\t   see the manual\n", [(GOOD, "annotates PyTorch (nsys profile --help has the values)")]),
    ("\t--output=\n\t--sample=\n", [(NOTE, "this nsys does not annotate PyTorch's operators and modules")]),
    ("another help", []),
])
def test_what_nsys_annotates_of_pytorch(path: Path, says: str, found: list[tuple[str, str]]) -> None:
    stub(path, "nsys", says)
    assert [(f.state, f.found) for f in fitness.pytorch_findings()] == found


def test_without_nsys_nothing_is_said_of_its_annotations(path: Path) -> None:
    assert list(fitness.pytorch_findings()) == []


@pytest.mark.parametrize(("says", "code", "state", "word"), [
    (TORCH, 0, GOOD, "CUDA 13.0"),
    (TORCH.replace('"13.0"', "null"), 0, NOTE, "without CUDA"),
    (TORCH.replace('"seen": true', '"seen": false'), 0, NOTE, "sees no GPU"),
    (TORCH.replace('"kineto": true', '"kineto": false'), 0, BAD, "Kineto"),
    ("ModuleNotFoundError: No module named 'torch'", 1, NOTE, "has no PyTorch"),
    ("ImportError: libcudart.so.13", 1, BAD, "libcudart.so.13"),
    ("not json", 0, BAD, "does not import"),
])
def test_torch(path: Path, says: str, code: int, state: str, word: str) -> None:
    stub(path, "python", says, code)
    found = fitness.torch_finding(Machine())
    assert (found.state, word in found.found) == (state, True), found


def test_mig_is_told(path: Path) -> None:
    assert fitness.gpu_finding(["NVIDIA H200, 570.1, Enabled"]).state == NOTE


def test_a_full_or_closed_disk(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    closed = by_subject(list(fitness.place_findings(tmp_path / "file" / "run")))
    assert closed["RUN_DIR"].state == BAD and verdict(list(closed.values())).startswith("Nothing can be recorded")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1 << 20))
    assert {f.state for f in fitness.place_findings(tmp_path)} == {BAD}


def test_a_run_directory_tells_missing_ranks(path: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for rank in (0, 1, 3):
        kineto(run / "torch" / f"rank{rank:04d}.pt.trace.json")
        (run / "torch" / f"rank{rank:04d}.run.json").write_text(json.dumps({"run": "x", "rank": rank, "world_size": 5}))
    (run / "torch" / "broken.json").write_text("")
    found = list(fitness.capture_findings(run))
    assert [f.found for f in found if f.state == NOTE] == ["torch.profiler: 3 files, ranks 0-1, 3 of 5; missing: 2, 4"]
    assert [f.found for f in found if f.state == BAD] == ["torch/broken.json: it is empty"]


@pytest.fixture(scope="module")
def imports() -> CheckResult:
    """What another Python says of our libraries: it takes as long as all else."""
    return installation.import_finding(installation._NATIVE)


@pytest.mark.parametrize("columns", ["80", "100", "300", "20", ""])
def test_it_reads_well_with_nothing_installed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: CheckResult, columns: str,
) -> None:
    monkeypatch.setattr(installation, "import_finding", lambda _: imports)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.chdir(tmp_path)
    with recorded() as made:
        done = CliRunner().invoke(command, ["run"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert any(line.startswith("note  nsys          Nsight Systems") for line in lines)
    assert lines[-1] == "No profiler can record here; captures from elsewhere can be read."
    width = {"80": 80, "100": 100, "300": 160, "20": 40, "": 120}[columns]
    assert [line for line in too_long(lines[:-1], width, made) if " " in line[23:]] == []
    told = " ".join(" ".join(lines).split())
    assert all(" ".join(f"{f.found} {'-> ' + f.fix if f.fix else ''}".split()) in told
               for f in examine(Path("run")) if "free" not in f.found)


def test_a_tmpdir_that_is_not_there_is_bad(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A RUN_DIR is made by the wrappers; a TMPDIR is not, even where its parent can be written."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    places = by_subject(list(fitness.place_findings(tmp_path / "run")))
    assert places["RUN_DIR"].state == GOOD
    assert (places["TMPDIR"].state, places["TMPDIR"].usable) == (BAD, False) and "mkdir -p" in places["TMPDIR"].fix
