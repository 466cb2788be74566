#!/usr/bin/env python3
"""Trains ResNet-18 or a transformer on one device or, under torchrun, mpiexec or srun, on several: a known load for profilers.

    python training.py --steps 20 --batch-size 256 --precision bf16 --channels-last
    python training.py --model transformer --precision bf16 --batch-size 8
    torchrun --standalone --nproc-per-node 4 training.py --run-dir runs/base
    python ../torch_profiler.py --run-dir runs/base training.py --steps 20

Steps are ranges ProfilerStep#N, phases `data`, `forward`, `backward`, `optimizer` (`graph` where a CUDA graph replays them), in
PyTorch's trace and in NVTX alike. With a RUN_DIR each rank writes <tool>/rank0003.steps.json under every tool: when its steps
began and ended, what ran, and the last loss.

So that the launches of two tools match one to one, nothing depends on time: weights, order of the data and batches follow from
--seed, and cuDNN picks its algorithms by its heuristics. --cudnn-benchmark lets it time them instead, as much training code does:
usually faster, but each start times them again, and under ncu, which replays and locks clocks, others may win. --compile times,
too, and keeps what won in TORCHINDUCTOR_CACHE_DIR: run once without a profiler first, as capture_all.sh does. TF32 is off in
--precision fp32 and on in tf32, for convolutions and matrix products alike, whatever the defaults of this PyTorch are.

Images are random unless --data names a CIFAR-10; tokens are random. Written for CUDA too, but run by its authors on CPUs only so
far: nccl, --cuda-graphs, --precision tf32 and fp16, --profiler-api, --cudnn-benchmark.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))   # the wrappers, where this file is run by itself

import torch
from images import Synthetic, cifar10, download
from network import resnet18
from nsl_annotate import annotate
from nsl_launch import Launch, find_launch, refused
from steps import StepLog, place
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler
from torch_profiler import take_steps
from transformer import Tokens, Transformer

_HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
_GRAPH_WARMUP = 11   # DistributedDataParallel needs as many eager iterations before a capture


@dataclass(frozen=True)
class Job:
    """What every part of the training needs to know."""

    options: argparse.Namespace
    launch: Launch
    device: torch.device

    @property
    def distributed(self) -> bool:
        """Return whether there are several ranks."""
        return self.launch.launcher != "none" and self.launch.world_size != 1


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options. Exits with code 2 for words or combinations that make no sense."""
    parser = argparse.ArgumentParser(description="Train a network as a load for profilers.", allow_abbrev=False)
    parser.add_argument("--model", choices=("resnet18", "transformer"), default="resnet18")
    parser.add_argument("--batch-size", type=_positive, default=32, help="images or sequences per rank and step [32]")
    parser.add_argument("--image-size", type=_positive, default=224, help="pixels per side [224]")
    parser.add_argument("--classes", type=_positive, default=1000, help="of images; of the transformer, its vocabulary [1000]")
    parser.add_argument("--sequence", type=_positive, default=1024, help="tokens of a sequence [1024]")
    parser.add_argument("--layers", type=_positive, default=4, help="of the transformer [4]")
    parser.add_argument("--width", type=_positive, default=1024, help="of the transformer [1024]")
    parser.add_argument("--heads", type=_positive, default=16, help="of its attention [16]")
    parser.add_argument("--steps", type=_positive, default=20, help="measured steps [20]")
    parser.add_argument("--warmup", type=int, default=5, help="steps before them [5]")
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"), default="fp32")
    parser.add_argument("--device", choices=("cuda", "cpu"), default=None, help="[cuda where there is one]")
    parser.add_argument("--channels-last", action="store_true", help="layout of the images")
    parser.add_argument("--cudnn-benchmark", action="store_true", help="cuDNN times its algorithms: tools may see others")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--cuda-graphs", action="store_true", help="capture one step, replay the others")
    parser.add_argument("--workers", type=int, default=0, help="processes of the data loader [0]")
    parser.add_argument("--pin-memory", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--persistent-workers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--threads", type=_positive, default=None, help="CPU threads of a rank")
    parser.add_argument("--data", type=Path, default=None, metavar="DIR", help="a CIFAR-10 on disk [random images]")
    parser.add_argument("--download", action="store_true", help="fetch CIFAR-10 into --data where it is missing")
    parser.add_argument("--run-dir", default=None, help="[NSIGHTLENS_RUN_DIR]")
    parser.add_argument("--profiler-api", action="store_true", help="cudaProfilerStart and Stop around the measured steps")
    parser.add_argument("--seed", type=int, default=18)
    options = parser.parse_args(words)
    if options.warmup < 0 or options.workers < 0:
        parser.error("--warmup and --workers count from 0")
    if options.download and options.data is None:
        parser.error("--download needs --data DIR, the folder to download into")
    if options.model == "transformer" and (options.data or options.channels_last):
        parser.error("--data and --channels-last are of images: not with --model transformer")
    if options.width % options.heads:
        parser.error("--width must be a multiple of --heads")
    if options.cuda_graphs and options.precision == "fp16":
        parser.error("--cuda-graphs with --precision fp16 would need a loss scaler inside the graph: use bf16")
    return options


def _positive(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a number from 1")
    return number


def prepare(options: argparse.Namespace, launch: Launch) -> Job:
    """Return the job on its device, its process group joined. Exits where the launcher leaves something open."""
    kind = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cpu" and (options.cuda_graphs or options.precision in ("tf32", "fp16") or options.profiler_api):
        raise refused("--cuda-graphs, --precision tf32 and fp16, and --profiler-api need a CUDA device")
    if kind == "cuda":
        visible = torch.cuda.device_count()
        if visible > 1 and launch.local_rank >= visible:
            raise refused(f"local rank {launch.local_rank} has no GPU of its own: {visible} are visible")
        device = torch.device("cuda", launch.local_rank if visible > 1 else 0)
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    job = Job(options, launch, device)
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    torch.backends.cudnn.benchmark = options.cudnn_benchmark
    torch.backends.cudnn.allow_tf32 = options.precision == "tf32"   # else PyTorch's default makes "fp32" convolutions TF32
    torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")
    if job.distributed:
        _join(job)
    return job


def _join(job: Job) -> None:
    launch = job.launch
    if launch.world_size is None:
        raise refused(f"{launch.launcher} does not say how many ranks there are: export WORLD_SIZE, RANK and LOCAL_RANK")
    if "MASTER_ADDR" not in os.environ:
        if launch.local_size != launch.world_size:
            raise refused("export MASTER_ADDR before the launcher: the first host, e.g. $(head -n 1 $PBS_NODEFILE) or "
                          "$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)")
        os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29500")
    if job.options.cuda_graphs:   # the watchdog must not ask for the state of what is being captured
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
    torch.distributed.init_process_group(
        "nccl" if job.device.type == "cuda" else "gloo", rank=launch.rank, world_size=launch.world_size,
        device_id=job.device if job.device.type == "cuda" else None)


def batches(job: Job) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (inputs, labels) on the device without end: images as float (N, 3, size, size), tokens as they are (N, T)."""
    o = job.options
    sampler: Any = None
    count, seed = o.batch_size * (o.warmup + o.steps + 1), o.seed + job.launch.rank
    if o.model == "transformer":
        data: Any = Tokens(count, o.sequence, o.classes, seed)
    elif o.data is None:
        data = Synthetic(count, o.image_size, o.classes, seed)
    else:
        if o.download and job.launch.local_rank == 0:
            download(o.data)
        if o.download and job.distributed:
            torch.distributed.barrier()
        data = cifar10(o.data)
        sampler = DistributedSampler(data, seed=o.seed) if job.distributed else None
    loader = DataLoader(
        data, o.batch_size, shuffle=o.data is not None and sampler is None, sampler=sampler, drop_last=True,
        generator=torch.Generator().manual_seed(o.seed),
        num_workers=o.workers, persistent_workers=o.persistent_workers and o.workers > 0,
        pin_memory=o.pin_memory and job.device.type == "cuda")
    if not len(loader):
        raise refused(f"--batch-size {o.batch_size}: there are fewer images than that for a rank")
    epoch = 0
    while True:
        if sampler is not None:
            sampler.set_epoch(epoch)
        for images, labels in loader:
            yield _on_device(job, images), labels.to(job.device, non_blocking=True)
        epoch += 1


def _on_device(job: Job, inputs: Tensor) -> Tensor:
    o = job.options
    if o.model == "transformer":
        return inputs.to(job.device, non_blocking=True)
    images = inputs.to(job.device, non_blocking=True).float().div_(255).sub_(0.5).mul_(4)
    if images.shape[-1] != o.image_size:
        images = nn.functional.interpolate(images, size=(o.image_size, o.image_size))
    return images.contiguous(memory_format=torch.channels_last) if o.channels_last else images


def build(job: Job) -> tuple[nn.Module, str]:
    """Return (model as it is trained, where its definition is from)."""
    o = job.options
    network, origin = resnet18(o.classes) if o.model == "resnet18" else (
        Transformer(o.classes, o.sequence, o.layers, o.width, o.heads), "local")
    network = network.to(job.device, memory_format=torch.channels_last if o.channels_last else torch.contiguous_format)
    if job.distributed:
        side = torch.cuda.stream(torch.cuda.Stream()) if o.cuda_graphs else nullcontext()   # as the capture's rules ask
        with side:
            devices = [job.device] if job.device.type == "cuda" else None
            network = nn.parallel.DistributedDataParallel(network, device_ids=devices, gradient_as_bucket_view=True)
    return (torch.compile(network) if o.compile else network), origin


class Training:
    """One model in training. step(images, labels) trains once; loss is the last one, still on the device."""

    def __init__(self, job: Job, model: nn.Module) -> None:
        self._job, self._model = job, model
        self._criterion = nn.CrossEntropyLoss()
        self._optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=True)
        self._scaler = torch.amp.GradScaler(job.device.type, enabled=job.options.precision == "fp16")
        self.loss: Tensor | None = None

    def _autocast(self) -> AbstractContextManager[Any]:
        half = _HALF.get(self._job.options.precision)
        # A capture must not meet casts that were cached outside of it.
        cache = not self._job.options.cuda_graphs
        return torch.autocast(self._job.device.type, half, cache_enabled=cache) if half else nullcontext()

    def step(self, inputs: Tensor, labels: Tensor) -> None:
        """Train on one batch."""
        with annotate("forward"), self._autocast():
            loss = self._criterion(self._model(inputs).flatten(0, -2), labels.flatten())   # a transformer's: one for each token
        with annotate("backward"):
            self._scaler.scale(loss).backward()
        with annotate("optimizer"):
            self._scaler.step(self._optimizer)
            self._scaler.update()
            self._optimizer.zero_grad(set_to_none=True)
        self.loss = loss.detach()

    def captured(self, inputs: Tensor, labels: Tensor) -> Callable[[Tensor, Tensor], None]:
        """Return a step that replays a CUDA graph of this one, captured after some eager steps on the batch given."""
        inputs, labels = inputs.clone(memory_format=torch.preserve_format), labels.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_GRAPH_WARMUP):
                self.step(inputs, labels)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # thread_local: other threads (of pinned memory, of NCCL) may query events meanwhile, which `global` forbids.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self.step(inputs, labels)

        def replay(new_inputs: Tensor, new_labels: Tensor) -> None:
            inputs.copy_(new_inputs)
            labels.copy_(new_labels)
            with annotate("graph"):
                graph.replay()

        return replay


def train(job: Job) -> tuple[StepLog, float, str]:
    """Train all steps; return (their times, last loss, where the network is from)."""
    model, origin = build(job)
    training, source = Training(job, model), batches(job)
    step = training.captured(*next(source)) if job.options.cuda_graphs else training.step
    log = StepLog(torch.cuda.synchronize if job.device.type == "cuda" else lambda: None, take_steps())

    def run(name: str, count: int) -> None:
        with log.window(name):
            for _ in range(count):
                with log.step():
                    with annotate("data"):
                        batch = next(source)
                    step(*batch)

    if job.options.warmup:
        run("warmup", job.options.warmup)
    if job.options.profiler_api:
        torch.cuda.profiler.start()
    run("measure", job.options.steps)
    if job.options.profiler_api:
        torch.cuda.profiler.stop()
    assert training.loss is not None
    return log, float(training.loss), origin


def main(words: Sequence[str] | None = None) -> None:
    """Train, write the step times, and print one line on rank 0."""
    options = parse(words)
    launch = find_launch()
    where = place(launch, options.run_dir)
    job = prepare(options, launch)
    try:
        log, loss, origin = train(job)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    if where:
        settings = {key: value for key, value in vars(options).items() if key not in ("run_dir", "data")}
        log.write(where, {"name": options.model, "network": origin, **settings,
                          "data": "cifar10" if options.data else "synthetic", "device": job.device.type,
                          "distributed": job.distributed, "tf32": options.precision == "tf32",
                          "loss": loss})
    if launch.rank == 0:
        step_ns = log.step_ns("measure")
        samples = options.batch_size * (launch.world_size or 1)
        print(f"{options.model} ({origin}) on {launch.world_size} x {job.device.type}, {options.precision}: "
              f"{step_ns / 1e6:,.3f} ms per step, {samples * 1e9 / step_ns:,.1f} samples/s, loss {loss:.4f}")


if __name__ == "__main__":
    main()
