"""A mutation of a capture: edits of its bytes, few enough that a failure can be understood, droppable one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Dice = random.Random


@dataclass(frozen=True, slots=True)
class Edit:
    """`size` bytes at offset `at` of the original become `new`."""

    at: int
    size: int
    new: bytes


@dataclass(frozen=True, slots=True)
class Mutation:
    """A base of a target, by name, and the edits made to it."""

    base: str
    edits: tuple[Edit, ...]


class Target(Protocol):
    """One format: bases to mutate, how to mutate them, and what must hold of any file of it."""

    NAME: str
    SUFFIX: str

    def bases(self) -> dict[str, bytes]:
        """Return the unmutated captures by name."""

    def edits(self, data: bytes, dice: Dice) -> list[Edit]:
        """Return edits that this format's structure suggests."""

    def differences(self, path: Path) -> list[str]:
        """Return what nsightlens reads otherwise than the oracle and says nothing about. ReadError is an answer; it may raise."""


def applied(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Return the bytes with all edits made; of two that overlap the later one is left out."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda each: each.at):
        if edit.at >= at:
            parts += [data[at:edit.at], edit.new]
            at = edit.at + edit.size
    return b"".join([*parts, data[at:]])


def mutation(target: Target, seed: int) -> Mutation:
    """Return the mutation of this number: the same one each time."""
    dice = random.Random(f"{target.NAME} {seed}")
    name = dice.choice(sorted(target.bases()))
    data = target.bases()[name]
    edits: list[Edit] = []
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        edits += anywhere(data, dice) if dice.random() < 0.15 else target.edits(data, dice)
    return Mutation(name, tuple(edits))


def anywhere(data: bytes, dice: Dice) -> list[Edit]:
    """Return an edit that knows nothing of the format: a bit, a byte, a hole, a copy of another stretch, a cut."""
    at = dice.randrange(len(data))
    kind = dice.choice(("bit", "bit", "byte", "hole", "copy", "cut", "insert"))
    if kind == "bit":
        return [Edit(at, 1, bytes([data[at] ^ 1 << dice.randrange(8)]))]
    if kind == "byte":
        return [Edit(at, 1, bytes([dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))]))]
    size = min(dice.choice((2, 16, 300, 4096)), len(data) - at)
    if kind == "hole":
        return [Edit(at, size, bytes(size))]
    if kind == "cut":
        return [Edit(at, len(data) - at, b"")]
    other = dice.randrange(len(data))
    return [Edit(at, 0 if kind == "insert" else size, data[other:other + size])]


def minimised(found: Mutation, fails: Callable[[Mutation], bool]) -> Mutation:
    """Return the mutation without the edits that the failure does not need."""
    for edit in found.edits:
        fewer = Mutation(found.base, tuple(each for each in found.edits if each is not edit))
        if fewer.edits and fails(fewer):
            found = fewer
    return found
