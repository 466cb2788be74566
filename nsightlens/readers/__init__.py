"""File -> tables in our terms and units: the tuple of readers.

A reader is a module (or small package) with the names of `Reader`. It knows `schema` and `errors` and nothing else of ours.
"""

from __future__ import annotations

from nsightlens.readers import flight_recorder, kineto, nccl_inspector, ncu, nsys, steps
from nsightlens.readers.reader import Reader

READERS: tuple[Reader, ...] = (nsys, ncu, steps, nccl_inspector, flight_recorder, kineto)
