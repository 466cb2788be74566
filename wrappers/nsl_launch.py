"""Rank, run, execution and place of a capture: the Python counterpart of launch.sh. Standard library only."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ALL_BY_HAND = "NSIGHTLENS_RANK, NSIGHTLENS_LOCAL_RANK and NSIGHTLENS_WORLD_SIZE"
_JOBS = ("SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID")


def say(text: str) -> None:
    """Write one line to standard error."""
    print(f"nsightlens: {text}", file=sys.stderr, flush=True)


class Refused(SystemExit):
    """The end of a program that was asked for what makes no sense (code 2) or cannot be met (1); reason says why."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(code)
        self.reason = reason


def refused(reason: str, code: int = 2) -> Refused:
    """Return the exit for a request that is refused, its reason said."""
    say(f"error: {reason}")
    return Refused(reason, code)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object; the file appears at once or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


@dataclass(frozen=True)
class Launch:
    """Who this process is. world_size, local_size, node: None where the launcher does not say."""

    launcher: str = "none"
    rank: int = 0
    local_rank: int = 0
    world_size: int | None = 1
    local_size: int | None = 1
    node: int | None = 0

    @property
    def single(self) -> bool:
        """Return whether there is one process only."""
        return self.launcher == "none" or self.world_size == 1


@dataclass(frozen=True)
class _Launcher:
    """The environment variables of one launcher. borrowed: its local rank in the words of another launcher."""

    name: str
    rank: tuple[str, ...]
    local: tuple[str, ...]
    size: tuple[str, ...]
    local_size: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    size_is_needed: bool = False


_MPI = (
    _Launcher("openmpi", ("OMPI_COMM_WORLD_RANK",), ("OMPI_COMM_WORLD_LOCAL_RANK",), ("OMPI_COMM_WORLD_SIZE",),
              ("OMPI_COMM_WORLD_LOCAL_SIZE",)),
    _Launcher("mpich", ("PMI_RANK", "PALS_RANKID"), ("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK", "MPI_LOCALRANKID"), ("PMI_SIZE",),
              ("PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE", "MPI_LOCALNRANKS"), ("PALS_NODEID",),
              ("OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "FLUX_TASK_LOCAL_ID")),
    _Launcher("pmix", ("PMIX_RANK",), (), ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"), node=("PALS_NODEID",),
              borrowed=("OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK", "FLUX_TASK_LOCAL_ID")),
    _Launcher("mvapich", ("MV2_COMM_WORLD_RANK",), ("MV2_COMM_WORLD_LOCAL_RANK",), ("MV2_COMM_WORLD_SIZE",),
              ("MV2_COMM_WORLD_LOCAL_SIZE",)),
)
_SLURM = _Launcher("slurm", ("SLURM_PROCID",), ("SLURM_LOCALID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"),
                   node=("SLURM_NODEID",))
_ENVIRONMENT = _Launcher("environment", ("RANK",), ("LOCAL_RANK",), ("WORLD_SIZE",), ("LOCAL_WORLD_SIZE",),
                         ("GROUP_RANK", "NODE_RANK"), size_is_needed=True)
_BY_HAND = _Launcher("nsightlens", ("NSIGHTLENS_RANK",), ("NSIGHTLENS_LOCAL_RANK",), ("NSIGHTLENS_WORLD_SIZE",),
                     size_is_needed=True)


def find_launch(env: Mapping[str, str] = os.environ) -> Launch:
    """Return rank, local rank and sizes. Exits with code 2 for a launcher that is half set or two that disagree."""
    if "NSIGHTLENS_RANK" in env:
        launch = _read(_BY_HAND, env) or Launch()
    elif env.get("TORCHELASTIC_RUN_ID"):   # the innermost: torchrun below mpiexec or srun inherits their ranks
        launch = _read(_ENVIRONMENT, env, must=True) or Launch()
    else:
        launches = [found for row in _MPI if (found := _read(row, env))]
        launches = launches or [found for found in [_slurm(env)] if found]
        launches += [found for found in [_read(_ENVIRONMENT, env, must=not launches)] if found]
        for other in launches[1:]:
            if other.rank != launches[0].rank:
                raise refused(f"{launches[0].launcher} says rank {launches[0].rank}, {other.launcher} says rank {other.rank}. "
                                 f"Unset the stale one, or set {_ALL_BY_HAND}")
        launch = launches[0] if launches else Launch()
        if launches:
            _refuse_left_over(launch, env)
    if launch.world_size is not None and launch.rank >= launch.world_size:
        raise refused(f"{launch.launcher} says rank {launch.rank} of {launch.world_size}: ranks count from 0")
    return launch


def _read(row: _Launcher, env: Mapping[str, str], must: bool = True) -> Launch | None:
    """Return what one launcher says, None where none of its variables is there. Half of them: an error, None unless `must`."""
    own = row.rank + row.local + (() if row.name == "pmix" else row.size)
    seen = {name: env[name] for name in own if name in env}
    if not seen:
        return None
    if len({int(env[name]) for name in row.rank if env.get(name, "").isdigit()}) > 1:
        raise refused(" and ".join(f"{name}={env[name]}" for name in row.rank) + " disagree: unset the stale one")
    rank, local, size = _number(env, row.rank), _number(env, row.local + row.borrowed), _number(env, row.size)
    if local is None and rank is not None and _in_slurm_step(env) and env.get("SLURM_PROCID") == str(rank):
        local = _number(env, ("SLURM_LOCALID",))   # srun --mpi=pmi2 or pmix: the same task in two words
        size = _number(env, ("SLURM_STEP_NUM_TASKS",)) if size is None else size
    if rank is None or local is None or (size is None and row.size_is_needed):
        if not must:
            return None
        values = " ".join(f"{name}={value!r}" for name, value in seen.items())
        raise refused(f"{row.name} is only partly set: {values}, but the rank, the local rank or the size is missing (looked at: "
                         f"{' '.join(row.rank + row.local + row.borrowed + row.size)}). Running on would make every rank rank 0. "
                         f"Unset them, or set {_ALL_BY_HAND}")
    local_size = _number(env, row.local_size)
    node = _number(env, row.node)
    name = "torchrun" if row is _ENVIRONMENT and env.get("TORCHELASTIC_RUN_ID") else row.name
    if name == "mpich" and (env.get("PALS_RANKID") or env.get("PALS_LOCAL_RANKID")):
        name = "pals"
    return Launch(name, rank, local, size, local_size, rank // local_size if node is None and local_size else node)


def _slurm(env: Mapping[str, str]) -> Launch | None:
    """Return what srun says. A batch script carries SLURM_PROCID=0 as well and is one process, whatever SLURM_NTASKS says."""
    found = _read(_SLURM, env)
    return found if found and (found.rank or _in_slurm_step(env)) else None


def _refuse_left_over(launch: Launch, env: Mapping[str, str]) -> None:
    """Exit with code 2 where an MPI launcher's variables come from outside of the step of srun that this process is in."""
    tasks = _number(env, ("SLURM_STEP_NUM_TASKS",)) if launch.launcher != "slurm" and _in_slurm_step(env) else None
    if tasks is not None and launch.world_size is not None and tasks > launch.world_size:
        raise refused(f"{launch.launcher} says {launch.world_size} ranks, but the step of srun has {tasks} tasks: "
                      f"{launch.launcher}'s variables are left over from outside. Unset them")
    number = _number(env, ("SLURM_PROCID",)) if tasks is not None and tasks == launch.world_size else None
    if number is not None and number != launch.rank and env.get("SLURM_LOCALID"):   # as many of both, so that each task is a rank
        raise refused(f"{launch.launcher} says rank {launch.rank}, slurm says rank {number}. Unset the stale one, or "
                      f"set {_ALL_BY_HAND}")


def _in_slurm_step(env: Mapping[str, str]) -> bool:
    step = env.get("SLURM_STEP_ID") or env.get("SLURM_STEPID") or ""
    return step.isdigit() and int(step) < 4294967280


def _number(env: Mapping[str, str], names: Sequence[str]) -> int | None:
    values = {name: env[name] for name in names if env.get(name)}
    for name, value in values.items():
        if not re.fullmatch(r"[0-9]{1,9}", value):
            raise refused(f"{name} is {value!r}, which is not a rank or size (a number from 0)")
    return int(next(iter(values.values()))) if values else None


def selected(launch: Launch, ranks: str, max_ranks: int | None) -> bool:
    """Return whether this rank is to be profiled. ranks: all, local0, or numbers as in 0,8. Exits with code 2 for others."""
    if not re.fullmatch(r"all|local\d{1,6}|\d{1,9}(,\d{1,9})*", ranks):
        raise refused(f"--ranks {ranks}: give all, numbers as in 0,8, or local0 (the first rank of each node)")
    place: int | None = launch.rank
    if ranks.startswith("local"):
        if int(ranks[5:]) != launch.local_rank:
            return False
        place = launch.node
        if place is None and max_ranks is not None:
            raise refused(f"--max-ranks with --ranks {ranks}: {launch.launcher} does not say which node this is. "
                             "Name the ranks: --ranks 0,8")
    elif ranks != "all":
        wanted = [int(rank) for rank in ranks.split(",")]
        if launch.rank not in wanted:
            return False
        place = wanted.index(launch.rank)
    return max_ranks is None or (place is not None and place < max_ranks)


@dataclass(frozen=True)
class Capture:
    """What one rank records in one execution, and where: files <stem>.*; stem is RUN_DIR/<folder>/rank0003."""

    launch: Launch
    run: str
    execution_id: str | None
    host: str
    run_dir: Path
    folder: str
    command: tuple[str, ...]

    @property
    def stem(self) -> Path:
        """Return the path of this rank's files without their endings."""
        return self.run_dir / self.folder / f"rank{self.launch.rank:04d}"

    def facts(self) -> dict[str, Any]:
        """Return what a sidecar begins with; secrets on the command line are struck out."""
        script = Path(self.command[0])
        return {
            "run": self.run, "rank": self.launch.rank, "world_size": self.launch.world_size, "local_rank": self.launch.local_rank,
            "host": self.host, "launcher": self.launch.launcher, "execution_id": self.execution_id,
            "command": words_struck(self.command),
            "git_commit": answer("git", "-C", str(script.parent if script.is_file() else "."), "rev-parse", "HEAD"),
        }


def capture(
    launch: Launch, folder: str, command: Sequence[str], *, run_dir: str | None = None, run_id: str | None = None,
    execution_id: str | None = None, env: Mapping[str, str] = os.environ,
) -> Capture:
    """Return the capture of this process, the same names on all ranks (no clock). Exits with code 2 where they share none."""
    host = env.get("HOSTNAME") or socket.gethostname()
    start = _start_of_launcher(launch, env)
    place = run_dir or env.get("NSIGHTLENS_RUN_DIR") or ""
    job = next((env[name] for name in _JOBS if env.get(name)), "")
    # A directory that was given names the run before any id of the job: one job may run several configurations.
    run = run_id or env.get("NSIGHTLENS_RUN_ID") or (Path(place).resolve().name if place else "") or job or start
    if not run and not launch.single:
        raise refused("no name for the run that all ranks share: set NSIGHTLENS_RUN_ID and pass it to all ranks, "
                         "or give --run-dir")
    run = run or f"{Path(command[0]).name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    place = place or str(Path("nsightlens-runs") / re.sub(r"[^A-Za-z0-9._-]", "_", run))
    execution = execution_id or env.get("NSIGHTLENS_EXECUTION_ID") or _execution(launch, folder, host, start, job, env)
    return Capture(launch, run, execution, host, Path(place).resolve(), folder, tuple(command))


def _start_of_launcher(launch: Launch, env: Mapping[str, str]) -> str:
    """Return what the launcher calls this start of the job, on all ranks alike; empty where it has no name for it."""
    job, number = env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID"), env.get("SLURM_STEP_ID") or env.get("SLURM_STEPID")
    step = f"{job or ''}.{number}" if _in_slurm_step(env) else ""
    if launch.launcher == "torchrun" and env.get("TORCHELASTIC_RUN_ID") != "none":
        return env["TORCHELASTIC_RUN_ID"]
    if launch.launcher == "slurm":
        return step
    if env.get("PALS_APID"):
        return ".".join(word for word in (env.get("PBS_JOBID"), env["PALS_APID"]) if word)
    return env.get("PMIX_NAMESPACE") or env.get("OMPI_MCA_ess_base_jobid") or step


def _execution(launch: Launch, folder: str, host: str, start: str, job: str, env: Mapping[str, str]) -> str | None:
    if launch.single:
        return f"{job and job + '-'}{host}-{os.getpid()}-{int(time.time())}-{folder}"
    if not start:
        say(f"warning: {launch.launcher} gives no id to this start of the job, so the times of its ranks will not be compared. "
            "Set NSIGHTLENS_EXECUTION_ID before the launcher (torchrun: --standalone or --rdzv-id)")
        return None
    counts = (("TORCHELASTIC_RESTART_COUNT", "restart"), ("SLURM_RESTART_COUNT", "requeue"))
    again = "".join(f"-{word}{env[name]}" for name, word in counts if env.get(name, "0") != "0")
    start = start if job in start else f"{job}.{start}"
    return f"{launch.launcher}-{start}{again}-{folder}"


def answer(*command: str) -> str | None:
    """Return what a command prints, None where it is not there, fails or takes more than 10 s."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


# What follows is nsightlens/discovery/secrets.py, word by word: no sidecar needs nsightlens to be without secrets.

MARK = "***"
_KEYS = r"(?:api|access|account|private|signing|encryption)[-_.]?key"
_NAME = (rf"[\w.+-]*(?:secret|passw|passphrase|credential|{_KEYS}|authorization)[\w.-]*"
         r"|[\w.+-]*(?:token|cookies?|signature)(?![\w.-])|-{0,2}(?:(?:hf|api|auth|access)[-_.])?tokens(?![\w.-])"
         r"|(?:[\w.+-]*[_.+-])?(?:auth|pwd|pw|pass|key|bearer|sig)(?![\w.-])")
_QUIET = re.compile(r"(?:.*[_.+-])?(?:tokens?|auth|pass|key|sig|cookies?|signature)", re.IGNORECASE | re.DOTALL)
"""Names that hold secrets, and counts and switches as well: `--max-token 512`, `key=3`, `--cookie auto`."""
_COUNT = re.compile(r"['\"]?(?:[-+]?\d{1,9}(?:\.\d*)?[kmgb]?|true|false|yes|no|on|off|none|null|auto)?['\"]?,?", re.IGNORECASE)
_PUBLIC = re.compile(r"-{0,2}(?:.*[_.+-])?(?:(?:kernel|sort|primary|foreign|partition|cache|group)[-_.]key"
                     r"|(?:bos|eos|pad|unk|sep|cls|mask|stop|start|end|image|special)[-_.]token)", re.IGNORECASE | re.DOTALL)
"""Names that only look so: columns of tables, and what language models call the words they are fed."""
_WORD = re.compile(r"key|pass|auth|sig", re.IGNORECASE)
"""Names that are words of a sentence where a colon follows: "key: value"."""
_SIGNATURE = re.compile(r"(?=['\"]?[^\d\s]*\d)['\"]?[\w%+/=-]{16,}['\"]?")

_VALUE = r"'[^']*'|\"[^\"]*\"|[^\s;&|'\"]+(?:'[^'\s]*'|\"[^\"\s]*\")*"
_NAMED = re.compile(rf"(?<![\w.+-])(?P<name>{_NAME})(?P<between>['\"]?(?:=|[^\S\n]=[^\S\n](?!=)|:\s{{1,4}}))"
                    rf"(?P<value>(?:(?:bearer|basic|digest|token)\s+)?(?:{_VALUE}))", re.IGNORECASE)
_OPTION = re.compile(rf"(?<![\w.+-])(?P<name>-(?:{_NAME}))(?P<between>['\"]?,?[\s\\]+)(?!--)(?P<value>{_VALUE})", re.IGNORECASE)
_WHOLE = re.compile(rf"(?P<name>{_NAME})=(?P<value>.+)", re.IGNORECASE | re.DOTALL)
_OPTION_NAME = re.compile(rf"-(?:{_NAME})", re.IGNORECASE)
_MORE_COOKIES = re.compile(rf"(?<=cookie: \*\*\*)(?:;\s*[\w.-]+=(?:{_VALUE}))+", re.IGNORECASE)

_PASSWORD_OPTIONS = {"mysql": "-p", "mysqldump": "-p", "mysqladmin": "-p", "mariadb": "-p", "sshpass": "-p", "redis-cli": "-a",
                     "curl": "-u"}
_PROGRAMS = "|".join(rf"{program}\s(?:[^;&|\n]{{0,300}}?\s)??{option}" for program, option in _PASSWORD_OPTIONS.items())
_PASSWORD = re.compile(rf"(?<![\w.-])((?:{_PROGRAMS})\s*)(?!-)(?:{_VALUE})")
_USER = r"[^\s/@:'\"]{0,500}:(?!\d{1,5}(?:[/?#]|$))[^\s'\"]{0,500}@|[^\s/@:'\"]{1,500}@"
_URL = re.compile(rf"\b(?P<scheme>[a-z][a-z0-9+.-]{{0,20}})(?P<slashes>:/{{1,2}})(?P<user>{_USER})", re.IGNORECASE)
_USER_ALONE = ("abfs", "abfss", "wasb", "wasbs", "ssh", "git+ssh", "sftp", "rsync")
"""Schemes in which a name alone before the @ is a container or an account."""
_SHAPE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{12,}|gh[opsu]_[A-Za-z0-9]{12,}|(?:github_pat_|glpat-|nvapi-|npm_|pypi-|dop_v1_)[\w-]{12,}"
    r"|sk-[A-Za-z_-]*\d[\w-]{12,}|[rs]k_live_\w{12,}|xox[abeprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{12,}|AIza[\w-]{30,}|ya29\.[\w-]{12,}"
    r"|eyJ[\w-]{8,}\.[\w.-]+)(?!\w)"
    r"|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)", re.DOTALL)


def without_secrets(value: object) -> object:
    """Return a text, the words of a command, or a mapping with these in it, with *** for the secrets; other things as is."""
    if isinstance(value, str):
        return struck(value)
    if isinstance(value, Mapping):
        return {name: MARK if hides(str(name), str(each)) and isinstance(each, str) else without_secrets(each)
                for name, each in value.items()}
    if isinstance(value, list | tuple):
        return words_struck(value) if all(isinstance(word, str) for word in value) else [without_secrets(each) for each in value]
    return value


def struck(text: str) -> str:
    """Return a text with *** for the secrets in it."""
    for pattern in (_NAMED, _OPTION):
        text = pattern.sub(_value_struck, text)
    return without_tokens(_PASSWORD.sub(rf"\1{MARK}", _MORE_COOKIES.sub("", text)))


def without_tokens(text: str) -> str:
    """Return a text with *** for what shows without a name to be a secret: for names of runs, which other names may stand in."""
    return _SHAPE.sub(MARK, _URL.sub(_user_struck, text))


def hides(name: str, value: str) -> bool:
    """Return whether a value is a secret, by its name."""
    if not _OPTION_NAME.fullmatch(f"-{name}") or _PUBLIC.fullmatch(name) or value in ("", "None", "null"):
        return False
    if name.lower().endswith("signature") and not name.lower().startswith("x-"):
        return _SIGNATURE.fullmatch(value) is not None
    return not (_QUIET.fullmatch(name) and _COUNT.fullmatch(value))


def _value_struck(found: re.Match[str]) -> str:
    name, between = found["name"], found["between"]
    is_sentence = between[0] == ":" and _WORD.fullmatch(name)
    is_code = between[0].isspace() and "=" in between and _QUIET.fullmatch(name)
    is_struck = found["value"].startswith(MARK)
    if is_sentence or is_code or is_struck or not hides(name, found["value"]):
        return found[0]
    return f"{name}{between}{MARK}"


def _user_struck(found: re.Match[str]) -> str:
    if ":" not in found["user"] and found["scheme"].lower() in _USER_ALONE:
        return found[0]
    return f"{found['scheme']}{found['slashes']}{MARK}@"


def words_struck(words: Sequence[str]) -> list[str]:
    """Return the words of a command with *** for the secrets in them."""
    shown: list[str] = []
    before = password = ""
    for word in words:
        whole = _WHOLE.fullmatch(word)
        if before and not word.startswith("--") and (before == password or hides(before, word)):
            shown.append(MARK)
            before, password = "", "" if before == password else password
            continue
        if password and word.startswith(password) and word != password:
            shown.append(f"{password}{MARK}")
            password = ""
        else:
            shown.append(f"{whole['name']}={MARK}" if whole and hides(whole["name"], whole["value"]) else struck(word))
        before = word if word == password or _OPTION_NAME.fullmatch(word) else ""
        password = _PASSWORD_OPTIONS.get(word.rpartition("/")[2], password)
    return shown
