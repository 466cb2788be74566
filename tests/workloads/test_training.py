"""ResNet-18, the transformer and their data, on the CPU."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import images
import network
import pytest
import torch
import training
from gemm import work
from nsl_launch import Launch
from transformer import Transformer

from tests.launchers.stand_ins import install
from tests.places import ROOT

WORKLOADS = ROOT / "wrappers" / "workloads"
TINY = ["--batch-size", "2", "--image-size", "32", "--warmup", "1", "--steps", "2", "--threads", "1", "--device", "cpu"]
SMALL_TRANSFORMER = ["--model", "transformer", "--layers", "1", "--width", "32", "--heads", "2", "--sequence", "8",
                     "--classes", "50"]


def run(program: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NSIGHTLENS_")}
    return subprocess.run([sys.executable, str(WORKLOADS / program), *words], capture_output=True, text=True, check=False,
                          env=clean | env, timeout=300)


def test_the_local_network_has_torchvisions_parameters() -> None:
    """The list was written by torchvision 0.28.0: resnet18().state_dict(), name, shape, type."""
    lines = (Path(__file__).parent / "torchvision_resnet18.tsv").read_text().splitlines()
    state = network.ResNet18().state_dict()
    ours = ["\t".join((name, "x".join(map(str, t.shape)) or "scalar", str(t.dtype).split(".")[1])) for name, t in state.items()]
    assert ours == lines
    assert sum(p.numel() for p in network.ResNet18().parameters()) == 11_689_512   # as torchvision documents it


def test_the_local_network_computes_what_torchvisions_does() -> None:
    try:
        from torchvision.models import resnet18
    except (ImportError, RuntimeError, OSError):
        pytest.skip("no torchvision that fits this torch")
    theirs, ours = resnet18().eval(), network.ResNet18().eval()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 64, 64)
    assert torch.equal(theirs(x), ours(x))


@pytest.mark.parametrize("size", [32, 65, 224])
def test_any_image_size(size: int) -> None:
    assert network.ResNet18(10)(torch.randn(2, 3, size, size)).shape == (2, 10)


@pytest.mark.parametrize("words", [
    [], ["--precision", "bf16", "--channels-last"], ["--workers", "1"], SMALL_TRANSFORMER,
    [*SMALL_TRANSFORMER, "--precision", "bf16"],
])
def test_it_trains(words: list[str], tmp_path: Path) -> None:
    done = run("training.py", *TINY, *words, "--run-dir", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert "ms per step" in done.stdout
    content = json.loads((tmp_path / "run" / "plain" / "rank0000.steps.json").read_text())
    assert [len(w["steps"]) for w in content["windows"]] == [1, 2]
    assert (content["rank"], content["world_size"], content["tool"]) == (0, 1, "plain")
    workload = content["workload"]
    assert (workload["batch_size"], workload["data"], workload["tf32"]) == (2, "synthetic", False)
    assert (workload["name"] in done.stdout) and workload["name"] == ("transformer" if "transformer" in words else "resnet18")
    assert f"loss {workload['loss']:.4f}" in done.stdout


def test_the_same_seed_gives_the_same_loss() -> None:
    losses = [run("training.py", *TINY, "--seed", seed).stdout.split("loss ")[1] for seed in ("1", "1")]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("words", [["--cuda-graphs"], ["--precision", "tf32"], ["--download"], ["--steps", "0"],
                                   ["--cuda-graphs", "--precision", "fp16"], ["--profiler-api"],
                                   ["--model", "transformer", "--channels-last"], ["--width", "31"]])
def test_what_makes_no_sense_is_refused(words: list[str]) -> None:
    done = run("training.py", *TINY, *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def job(*words: str, launch: Launch | None = None) -> training.Job:
    return training.Job(training.parse([*TINY, *words]), launch or Launch(), torch.device("cpu"))


def test_every_tool_sees_the_same_work_and_has_its_step_times(tmp_path: Path) -> None:
    """Four starts under four tools: the last loss is the same to the bit."""
    (tmp_path / "bin").mkdir()
    install(tmp_path / "bin")
    path = f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    words = ["--run-dir", "base", "--torch-options", "--steps-from none", "--", "python", str(WORKLOADS / "training.py"), *TINY,
             *SMALL_TRANSFORMER]
    done = subprocess.run([str(ROOT / "wrappers" / "capture_all.sh"), *words], cwd=tmp_path, env=env, capture_output=True,
                          text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    logs = {path.parent.name: json.loads(path.read_text()) for path in (tmp_path / "base").rglob("*.steps.json")}
    assert sorted(logs) == ["ncu", "nsys", "plain", "torch"]
    assert [[len(w["steps"]) for w in log["windows"]] for log in logs.values()] == [[1, 2]] * 4
    assert len({log["workload"]["loss"] for log in logs.values()}) == 1


def test_the_order_of_the_data_follows_from_the_seed_alone(tmp_path: Path) -> None:
    _binary(tmp_path, 20)
    orders = []
    for drawn in (0, 5):   # as another network would draw its weights
        torch.manual_seed(1)
        torch.randn(drawn)
        batch = next(training.batches(job("--data", str(tmp_path), "--batch-size", "16")))
        orders.append(batch[1].tolist())
    assert orders[0] == orders[1] != sorted(orders[0])


@pytest.mark.parametrize(("words", "timed"), [([], False), (["--cudnn-benchmark"], True)])
def test_algorithms_are_timed_only_when_asked_and_tf32_is_off(
    monkeypatch: pytest.MonkeyPatch, words: list[str], timed: bool,
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", not timed)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    training.prepare(training.parse([*TINY, *words]), Launch())
    assert (torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32) == (timed, False)
    assert torch.get_float32_matmul_precision() == "highest"


def test_gradients_are_views_of_the_buckets_and_the_optimizer_is_fused(tmp_path: Path) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    try:
        several = job(*SMALL_TRANSFORMER, launch=Launch("torchrun", 0, 0, 2, 2, 0))
        model, _ = training.build(several)
        assert model.gradient_as_bucket_view is True
        assert training.Training(several, model)._optimizer.defaults["fused"] is True
    finally:
        torch.distributed.destroy_process_group()


def test_the_transformer_looks_at_no_later_token() -> None:
    torch.manual_seed(0)
    model = Transformer(50, 8, 2, 32, 2).eval()
    tokens = torch.arange(8).view(1, 8)
    changed = tokens.clone()
    changed[0, 5:] = 40
    one, other = model(tokens), model(changed)
    assert one.shape == (1, 8, 50)
    assert torch.equal(one[0, :5], other[0, :5]) and not torch.allclose(one[0, 5:], other[0, 5:])


def test_several_hosts_need_a_master() -> None:
    done = run("training.py", *TINY, SLURM_STEP_ID="0", SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_STEP_NUM_TASKS="2")
    assert done.returncode == 2 and "MASTER_ADDR" in done.stderr


def _binary(folder: Path, records: int) -> None:
    (folder / "cifar-10-batches-bin").mkdir(parents=True)
    for batch in (1, 2):
        content = b"".join(bytes([i % 10]) + bytes([batch * 20 + i]) * 3072 for i in range(records))
        (folder / "cifar-10-batches-bin" / f"data_batch_{batch}.bin").write_bytes(content)


def test_cifar10_in_its_binary_version(tmp_path: Path) -> None:
    _binary(tmp_path, 4)
    data = images.cifar10(tmp_path)
    assert [int(label) for _, label in data] == [0, 1, 2, 3] * 2
    assert [int(image.unique().item()) for image, _ in data] == [20, 21, 22, 23, 40, 41, 42, 43]
    assert data[0][0].shape == (3, 32, 32)
    done = run("training.py", *TINY, "--data", str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_cifar10_in_its_python_version(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    content = {b"data": numpy.full((3, 3072), 9, numpy.uint8), b"labels": [1, 2, 3]}
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(content, protocol=2))
    data = images.cifar10(tmp_path)
    assert [int(label) for _, label in data] == [1, 2, 3] and int(data[0][0].max()) == 9


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("false",)


@pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps(Evil()), pickle.dumps({b"labels": [1]})])
def test_a_batch_that_is_none_is_refused_and_runs_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(SystemExit):
        images.cifar10(tmp_path)


def test_no_data_and_cut_data_are_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        images.cifar10(tmp_path)
    _binary(tmp_path, 2)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin").write_bytes(b"x" * 100)
    with pytest.raises(SystemExit):
        images.cifar10(tmp_path)


def test_gemm_knows_its_work(tmp_path: Path) -> None:
    done = run("gemm.py", "--m", "64", "--n", "32", "--k", "17", "--repeats", "3", "--device", "cpu", "--run-dir", str(tmp_path))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["operations"] == 2 * 64 * 32 * 17 == work(64, 32, 17, 2)[0]
    assert result["bytes"] == 2 * (64 * 17 + 17 * 32 + 64 * 32)
    assert len(result["times_ns"]) == 3 and all(type(t) is int and t > 0 for t in result["times_ns"])
    content = json.loads((tmp_path / "plain" / "rank0000.steps.json").read_text())
    assert content["workload"]["operations"] == result["operations"]
