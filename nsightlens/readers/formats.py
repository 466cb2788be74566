"""The readers, in the order in which they are asked whether a file is theirs."""


from __future__ import annotations

from nsightlens.readers import flight_recorder, kineto, nccl_inspector, ncu, nsys, steps
from nsightlens.readers.reader import Reader

READERS: tuple[Reader, ...] = (nsys, ncu, steps, nccl_inspector, flight_recorder, kineto)
