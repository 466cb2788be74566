"""Labelled images as uint8 tensors (3, size, size): synthetic ones, or a CIFAR-10 that is on disk."""

from __future__ import annotations

import hashlib
import pickle
import tarfile
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import torch
from nsl_launch import refused
from torch import Tensor
from torch.utils.data import TensorDataset

CIFAR10_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR10_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"   # as its page says
_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE
_POOL = 64


class Synthetic:
    """`count` images of random pixels, drawn once and handed out in turn: the same on every machine for the same seed."""

    def __init__(self, count: int, size: int, classes: int, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._count = count
        self._images = torch.randint(0, 256, (_POOL, 3, size, size), dtype=torch.uint8, generator=generator)
        self._labels = torch.randint(0, classes, (_POOL,), generator=generator)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self._images[index % _POOL], self._labels[index % _POOL]


def cifar10(folder: Path) -> TensorDataset:
    """Return the 50,000 training images below `folder`, binary or Python version. Exits with code 1 where there are none."""
    for binary in sorted(folder.rglob("data_batch_1.bin")):
        parts = [_binary(path) for path in sorted(binary.parent.glob("data_batch_*.bin"))]
        break
    else:
        for pickled in sorted(folder.rglob("data_batch_1")):
            parts = [_pickled(path) for path in sorted(pickled.parent.glob("data_batch_?"))]
            break
        else:
            raise refused(f"{folder}: no CIFAR-10 there (data_batch_1.bin or data_batch_1): give its folder to --data, "
                          "or say --download", code=1)
    return TensorDataset(torch.cat([images for images, _ in parts]), torch.cat([labels for _, labels in parts]))


def _binary(path: Path) -> tuple[Tensor, Tensor]:
    """Return images and labels of records of a label byte and 3,072 pixel bytes."""
    content = bytearray(path.read_bytes())
    if not content or len(content) % (1 + _PIXELS):
        raise refused(f"{path}: {len(content)} bytes are no whole CIFAR-10 records; download it again", code=1)
    records = torch.frombuffer(content, dtype=torch.uint8).view(-1, 1 + _PIXELS)
    return records[:, 1:].reshape(-1, 3, _SIDE, _SIDE), records[:, 0].long()


class _OnlyArrays(pickle.Unpickler):
    """Unpickles numpy arrays and plain values, and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what an array is made of. Raises UnpicklingError for all else."""
        if (module.replace("numpy._core", "numpy.core"), name) in {
            ("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"),
        }:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into CIFAR-10")


def _pickled(path: Path) -> tuple[Tensor, Tensor]:
    try:
        with path.open("rb") as file:
            content = _OnlyArrays(file, encoding="bytes").load()
        return torch.as_tensor(content[b"data"]).view(-1, 3, _SIDE, _SIDE), torch.as_tensor(content[b"labels"]).long()
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, ImportError) as exc:
        raise refused(f"{path}: not a batch of CIFAR-10 ({exc}); download it again", code=1) from exc


def download(folder: Path) -> None:
    """Fetch CIFAR-10 (170 MB) into `folder` unless it is there. Exits with code 1 where something else comes."""
    if next(folder.rglob("data_batch_1*"), None):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".tar.gz") as archive:
        digest = hashlib.md5(usedforsecurity=False)
        with urllib.request.urlopen(CIFAR10_URL, timeout=60) as source:
            while block := source.read(1 << 20):
                digest.update(block)
                archive.write(block)
        if digest.hexdigest() != CIFAR10_MD5:
            raise refused(f"{CIFAR10_URL}: the download is not CIFAR-10 (MD5 {digest.hexdigest()})", code=1)
        archive.flush()
        with tarfile.open(archive.name) as packed:
            packed.extractall(folder, filter="data")
