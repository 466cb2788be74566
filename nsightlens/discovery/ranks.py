"""Run, rank and world size of a file: sidecar, else content, else file name, else None; each answer says where it came from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from nsightlens.discovery.secrets import without_secrets, without_tokens
from nsightlens.readers.settings import setting
from nsightlens.terminal.printable import printable

SIDECAR_SUFFIX = ".run.json"
_MAX_SIDECAR_BYTES = 1 << 20
_MAX_PROBLEM = 300
# The fields of a sidecar that describe how a run was made: equal on all its ranks, and different between unlike runs.
_SETTINGS = ("command", "git_commit", "launcher", "driver_version", "cuda_version", "torch_version", "torch_cuda_version",
             "python_version")
_NAMES = ("run", "execution_id", "execution", "host")
"""Fields that rows are joined by: `key=1` in the name of a run is what it is called."""
_GPU_SETTINGS = ("max_sm_clock_mhz", "max_memory_clock_mhz", "power_limit_w")
MAX_NAME = 240
"""Longest name of a run, percent-encoded as in a folder's name."""

# "rank3", "rank_3", "rank-34_of_300", "node1_rank3", "_r3": a number directly behind the word, and no letter before it.
_RANK_IN_NAME = re.compile(r"(?:(?<![A-Za-z])rank[-_.=]?|(?<=[_.-])r(?:k)?[-_]?)(\d{1,7})(?![\dA-Za-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which launches of the program a capture holds, as the wrapper set it up; None where unknown.

    kernel_filter: `function NAME`, or `function|demangled|mangled regex:EXPRESSION`; launch_skip: launches found by it that ncu
    passed over; launch_count: the most that it measured. from_start: recording began with the process.
    """

    kernel_filter: str | None = None
    launch_skip: int | None = None
    launch_count: int | None = None
    from_start: bool | None = None


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What the `<stem>.run.json` beside a capture says; None for what it does not say."""

    path: Path
    run: str | None = None
    execution: str | None = None
    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    host: str | None = None
    simulated: bool = False
    exit_code: int | None = None
    problems: tuple[str, ...] = ()
    selection: Selection = Selection()
    settings: tuple[tuple[str, str], ...] = ()

    def complaints(self) -> list[str]:
        """Return what the wrapper saw go wrong while it recorded, a sentence each."""
        ended = f"the program that was recorded ended with exit code {self.exit_code}: the capture may stop early"
        return ([ended] if self.exit_code else []) + [f"the wrapper said: {problem}" for problem in self.problems]


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts rank 10 after rank 9."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text) if part)


def sidecar_path(path: Path) -> Path | None:
    """Return the sidecar beside `path`, found by stripping its suffixes one by one, or None."""
    name = path.name
    while name:
        candidate = path.with_name(name + SIDECAR_SUFFIX)
        if candidate.is_file():
            return candidate
        stem, dot, _ = name.rpartition(".")
        if not dot:
            return None
        name = stem
    return None


def read_sidecar(path: Path) -> Sidecar:
    """Return the sidecar at `path`. Raises ValueError (with a reason) for one that is not a JSON object of ours."""
    return sidecar_of(path, sidecar_content(path))


def sidecar_content(path: Path) -> Mapping[str, object]:
    """Return the members of the sidecar at `path`. Raises ValueError (with a reason) for one that is not a JSON object."""
    if path.stat().st_size > _MAX_SIDECAR_BYTES:
        raise ValueError("it is larger than 1 MiB")
    content = json.loads(path.read_bytes())
    if not isinstance(content, Mapping):
        raise ValueError("it is not a JSON object")
    return content


def sidecar_of(path: Path, content: Mapping[str, object]) -> Sidecar:
    """Return what the members of a sidecar say, without secrets. Raises ValueError (with a reason) for values that cannot be."""
    content = _without_secrets(content)
    return Sidecar(
        path=path,
        run=_text(content, "run"),
        execution=_text(content, "execution_id") or _text(content, "execution"),
        rank=_number(content, "rank"),
        world_size=_number(content, "world_size"),
        local_rank=_number(content, "local_rank"),
        host=_text(content, "host"),
        simulated=content.get("simulated") is True,
        exit_code=_code(content.get("exit_code")),
        problems=_problems(content.get("problems")),
        selection=_selection(content),
        settings=_settings(content),
    )


def _without_secrets(content: Mapping[str, object]) -> dict[str, object]:
    return {name: without_tokens(value) if name in _NAMES and isinstance(value, str) else without_secrets(value)
            for name, value in content.items()}


def _settings(content: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return (name, value) pairs from the sidecar that describe how the run was made."""
    stated = {name: setting(content.get(name)) for name in _SETTINGS}
    gpus = content.get("gpus")
    listed = [gpu for gpu in gpus if isinstance(gpu, Mapping)] if isinstance(gpus, list) else []
    for name in _GPU_SETTINGS:
        values = {value for gpu in listed if (value := setting(gpu.get(name))) is not None}
        stated[f"gpu {name}"] = ", ".join(sorted(values)) or None
    return tuple((name, value) for name, value in stated.items() if value is not None)


# Options of ncu beside the wrapper's own that leave the choice of launches as it is, and options of nsys that delay its start.
_NCU_HARMLESS = re.compile(r"--(nvtx|set|section|metrics|import-source|print-[a-z-]+|verbose|call-stack|check-exit-code)(=.*)?")
_NSYS_LATE = re.compile(r"--(delay|capture-range|start-later|session|session-new|hotkey-capture|trigger)\b|(^|\s)-[cyp]")


def _selection(content: Mapping[str, object]) -> Selection:
    """Return what the wrapper's options say; nothing where an option of the user's own may say otherwise."""
    options = content.get("options")
    if not isinstance(options, Mapping):
        return Selection()
    stated = {key: value or "" for key, value in options.items() if isinstance(key, str) and isinstance(value, str | None)}
    if content.get("tool") == "nsys" and {"capture_range", "nsys_options"} <= stated.keys():
        late = stated["capture_range"] not in ("", "none") or _NSYS_LATE.search(stated["nsys_options"])
        return Selection(from_start=not late)
    if content.get("tool") != "ncu" or not {"kernel_filter", "kernel_name_base", "ncu_options"} <= stated.keys():
        return Selection()
    skip, count = stated.get("launch_skip", ""), stated.get("launch_count", "")
    replayed = stated.get("replay_mode") in ("kernel", "application")
    if not replayed or not all(map(_NCU_HARMLESS.fullmatch, stated["ncu_options"].split())):
        return Selection()
    if not (re.fullmatch("[0-9]{1,9}", skip) and re.fullmatch("[0-9]{1,9}", count)):
        return Selection()
    return Selection(f"{stated['kernel_name_base']} {stated['kernel_filter']}", int(skip), int(count))


def _code(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31 else None


def _problems(value: object) -> tuple[str, ...]:
    texts = [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
    return tuple("".join(c if c.isprintable() else " " for c in text[:_MAX_PROBLEM]) for text in texts)


def _text(content: Mapping[str, object], key: str) -> str | None:
    value = content.get(key)
    if not isinstance(value, str) or not value:
        return None
    value = printable(value.encode("utf-8", "replace").decode())
    if len(quote(value, safe="")) > MAX_NAME:
        raise ValueError(f"its {key} is too long")
    return value


def _number(content: Mapping[str, object], key: str) -> int | None:
    value = content.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"its {key} is {value!r}, not a number from 0")
    return value


def rank_from_name(path: Path, root: Path, pattern: re.Pattern[str] | None = None) -> tuple[int | None, str | None]:
    """Return (rank, source) from the file name, else from the nearest folder below `root` that names one.

    `pattern`: the user's own; its first group (or the group `rank`) is the rank. A name with two different ranks gives none.
    """
    search, source = (pattern, "pattern") if pattern else (_RANK_IN_NAME, "filename")
    try:
        parts = path.relative_to(root).parts
    except ValueError:
        parts = (path.name,)
    for part in reversed(parts or (path.name,)):
        found = {_rank_group(match) for match in search.finditer(part)}
        if len(found) == 1:
            rank = found.pop()
            if rank is not None:
                return rank, source
        elif found:
            return None, None
    return None, None


def _rank_group(match: re.Match[str]) -> int | None:
    text = match["rank"] if "rank" in match.re.groupindex else match[1 if match.re.groups else 0]
    return int(text) if text and text.isdigit() and int(text) < 1 << 31 else None
