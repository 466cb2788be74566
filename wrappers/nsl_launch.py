"""Rank, run, execution and place of a capture: the Python counterpart of launch.sh. Standard library only."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ALL_BY_HAND = "NSIGHTLENS_RANK, NSIGHTLENS_LOCAL_RANK and NSIGHTLENS_WORLD_SIZE"
_JOBS = ("SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID")


def say(text: str) -> None:
    """Write one line to standard error."""
    print(f"nsightlens: {text}", file=sys.stderr, flush=True)


class Option(str):
    """An option within a sentence, as the command line calls it: --run-dir."""

    @property
    def in_python(self) -> str:
        """Return what a function calls it."""
        return self[2:].replace("-", "_")


class Refused(SystemExit):
    """The end of a program that was asked for what makes no sense (code 2) or cannot be met (1); reason: the parts of why."""

    def __init__(self, reason: Sequence[str], code: int) -> None:
        super().__init__(code)
        self.reason = reason


def refused(*reason: str, code: int = 2) -> Refused:
    """Return the exit for a request that is refused, its reason said."""
    say(f"error: {''.join(reason)}")
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
    """Return whether this rank is to be profiled. ranks: all, local0, or numbers as in 0,8. Exits with code 2 for others.

    Without max_ranks, a rank that is not below RANKCUTOFF is none to profile.
    """
    if not re.fullmatch(r"all|local\d{1,6}|\d{1,9}(,\d{1,9})*", ranks):
        raise refused(Option("--ranks"), f" {ranks}: give all, numbers as in 0,8, or local0 (the first rank of each node)")
    cutoff = _number(os.environ, ("RANKCUTOFF",)) if max_ranks is None else None
    if cutoff is not None and launch.rank >= cutoff:
        return False
    place: int | None = launch.rank
    if ranks.startswith("local"):
        if int(ranks[5:]) != launch.local_rank:
            return False
        place = launch.node
        if place is None and max_ranks is not None:
            raise refused(Option("--max-ranks"), " with ", Option("--ranks"), f" {ranks}: {launch.launcher} does not say which "
                          "node this is. Name the ranks: ", Option("--ranks"), " 0,8")
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
                      "or give ", Option("--run-dir"))
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
        if launch.rank == 0:
            say(f"warning: export NSIGHTLENS_EXECUTION_ID={job or 'ID'}-1 before {launch.launcher} starts the ranks "
                "(torchrun: --standalone or --rdzv-id), else their times are not compared")
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
_KEYS = ("(?:api|access|account|auth|private|signing|encryption|shared|storage|subscription|master|service|deploy|license|ssh)"
         "%skey")
NAMED = ("secret|passw|passphrase|credential|authorization|sess(?:ion)?id|" + _KEYS % "[_.+-]?"
         + "|(?:pass|pwd?|sig(?:nature)?|tokens?|cookies?|auth|bearer|jwt|otp)(?:[^a-z]|$|value|read|write|prod|dev|test)"
         "|sshpass|curl|login|redis-cli|mysql|mariadb|mongo|ldap|twine")
SHAPED = (r"@|hooks\.slack|webhook|api\.telegram|hf_|gh[opsu]_|github_pat_|glpat-|nvapi-|npm_|pypi-|dop_v1_|xapp-|tskey-"
          r"|gsk_|r8_|sk-|k_live_|xox|a[ks]ia|aiza|ya29\.|eyj|private key")
"""A text without NAMED, in lower case, assigns no secret; one without SHAPED shows none by itself: nearly all names of kernels
leave by these. They are written for every kind of regular expression."""
_NAMED, _SHAPED = re.compile(NAMED), re.compile(SHAPED)
INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
ENCODED = re.compile(r"%(?:25)*(?:2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])", re.IGNORECASE)
"""Letters, digits and -._~ in percent codes, which mean the same (RFC 3986): `%74oken=x`."""

# Names, in lower case, their parts joined by _: a name names what its last part does (a password-file is a file).
_ALWAYS = re.compile(rf"secret(?!ar)|passw|passphrase|credential|authorization|{_KEYS % '_?'}|(?:^|_)(?:jwt|otp)$|sess(?:ion)?id$"
                     r"|(?:db|pg|sql|user|root|admin|proxy|smtp|ftp|ssh|my)_?pass$")
_NO_COUNT = re.compile(r"token$|(?:^|(?:^|_)(?:hf|api|auth|access|secret|refresh)_?)tokens$|cookies?$"
                       r"|(?:^|_)(?:auth|bearer|pw)$|_pwd$")
_IF_RANDOM = re.compile(r"(?:^|_)(?:pass|pwd|sig|signature)$")
_OTHER = re.compile(r"(?:file|path|dir)s?$"
                    r"|_(?:directory|folder|name|type|length|len|count|size|limit|policy|provider|helper|stdin)$"
                    r"|(?:^|_)(?:bos|eos|pad|unk|sep|cls|mask|stop|start|end|image|special)_?tokens?$")
"""Names of what is about a secret, and of what language models call the words they are fed."""
_STEM = re.compile(r"secret|pass|credential|key|auth|token|cookie|bearer|sig|pw|jwt|otp|sess", re.IGNORECASE)
"""What each of these names has in it: most words of a text have none."""
_VARIANT = re.compile(r"(?:_(?:value|read|write|prod|dev|test))+\Z")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SWITCH = re.compile(r"true|false|yes|no|on|off|none|null|auto|bearer|basic|digest|negotiate", re.IGNORECASE)
_COUNT = re.compile(r"[-+]?\d{1,9}(?:\.\d*)?[kmgb]?|\w[\w.]*[(\[].*", re.IGNORECASE | re.DOTALL)
"""Values of names that mean numbers and objects of a program as well: `--max-token 512`, `token=tokens[i]`."""
_RANDOM = re.compile(r"(?=\D*\d)(?:[\w%+=-][\w%+/=-]{15,}|(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[\w%+=-][\w%+/=!#@$^*-]{7,})")

_GAP = r"(?:\\?[\s\0])"
"""Between the words of a text: white space, a line that goes on; between the words of a command that was put together: NUL."""
_PAIRED = r",?\s*\\*['\"]?value\\*['\"]?\s*[:=](?![:=])"
"""Between a name and a value that are members of one thing: `name: HF_TOKEN, value: x`."""
_NAME = re.compile(
    rf"(?P<name>[\w.+-]+)(?P<quote>\\*['\"]|%22)?[\])]?(?P<before>{_GAP}*)"
    rf"(?P<sign>[:+?]?=(?!=)>?|:-|: ?(?:str|bytes|string|SecretStr) ?=(?!=)|:(?!:)|{_PAIRED}|,|%(?:25)*3[ad]|)(?P<after>{_GAP}*)",
    re.IGNORECASE)
_SCHEME = r"(?:(?:bearer|basic|digest|token|negotiate|apikey|!!\w{1,20})(?:\\?\s)+)?"
_CHUNK = r"(?:\\[^\0]|[^\s;&|'\"\\\0])+"
_QUOTED = (r"(?:\$|[rbuf]{1,2})?(?:\\+\"[^\"\0]*\"?|\\+'[^'\0]*'?|\"(?:[^\"\\\0]|\\[^\0])*\"?|'(?:[^'\\\0]|\\[^\0])*'?)"
           r"(?:[\w$/+=-]+|'[^'\s\0]*'|\"[^\"\s\0]*\")*")
_GROUP = r"(?:\([^)\0]*\)?|\[[^\]\0]*\]?|\{[^}\0]*\}?)"
_ONE = rf"(?:{_QUOTED}|{_GROUP}(?:{_CHUNK})?|{_CHUNK}(?:'[^'\s\0]*'|\"[^\"\s\0]*\"|{_CHUNK})*)"
_VALUE = re.compile(rf"{_SCHEME}{_ONE}", re.IGNORECASE)
_HEADER = re.compile(rf"(?:[a-z][\w-]*(?:\\?\s)+)?{_ONE}(?:(?:[;,]|(?<=,))\s*[\w.-]+={_ONE})*", re.IGNORECASE)
"""The value of a header that is not quoted: `Cookie: a=x; b=y`, `Authorization: Digest a="x", b="y"`."""
_TO_NUL = re.compile(rf"{_SCHEME}[^\0]*", re.IGNORECASE)
_TO_CLOSING = {"\0": _TO_NUL, "'": re.compile(r"[^'\0]*(?=')"), '"': re.compile(r"[^\"\0]*(?=\")")}
"""The value of a name that stands right behind a quote or at the start of a word of a command: all up to the end of that."""
_STRUCK = re.compile(r"\*{3}[,;)}\]/>]*(?:<.*)?", re.DOTALL)
_AFTER_WORD = re.compile(r"\w[^\S\n]\Z")
_JUDGED = 100
"""So many characters of a value say whether it is a secret; one that is is struck to its end."""
_SETTER = re.compile(r"(?:(?<![\w-])--?g?env|setenv|config[\s\0]+set|set[\s\0]+-\w+"
                     r"|\b(?:default(?=[\s\0]+login)|machine[\s\0]+[^\s\0]+)(?:[\s\0]+(?:login|account)[\s\0]+[^\s\0]+)*"
                     r")[\s\0]+\Z")
"""What stands before a name whose value is the next word; the last are lines of a .netrc."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_KNOWN = frozenset((
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "WANDB_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NGC_API_KEY",
    "NVIDIA_API_KEY", "COMET_API_KEY", "NEPTUNE_API_TOKEN", "CLEARML_API_SECRET_KEY", "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN", "SLACK_BOT_TOKEN", "TELEGRAM_BOT_TOKEN", "NPM_TOKEN", "TWINE_PASSWORD", "DOCKER_PASSWORD",
    "MYSQL_PWD"))
"""Variables that mean one secret wherever they stand: the word behind them is one, but for those that go on with a sentence."""
_GOES_ON = re.compile(
    r"(?:is|are|was|were|be|been|and|or|but|nor|not|in|into|on|at|to|of|for|from|by|with|within|without|as|if|when|where|while|via"
    r"|before|after|until|since|unless|then|than|that|this|which|the|an?|your|its|must|may|might|can|cannot|could|should|would|will"
    r"|has|have|had|does|did|do|isn|wasn|here|there|instead|again|first|only|also|too|environment|env|variables?|vars?|values?"
    r"|secrets?|tokens?|keys?|passwords?|set|unset|given|found|missing|needed|required|invalid|expired|expires|empty|undefined"
    r"|exported|provided|struck)(?:'\w+)?\W*", re.IGNORECASE)
_BEHIND_OPTION = re.compile(r"\0--?\w[^\0=]*\0\Z|(?:\A|\s)--?\w[^\s\0=]*\s+\Z")
_LINE_BEGINS = re.compile(r"(?:\A|[\n\0;])[^\S\n]*\Z")
_REST_OF_LINE = re.compile(r"(?=[^\s\0\d]*\d)(?=[^\s\0]*[^\s\0\d])[^\s\0]+(?=[^\S\n]{0,20}(?:[\n\0;]|\Z))")
_CALL = re.compile(r"\w\(\s*\\*['\"]\Z")
_NEXT_COMMAND = re.compile(r"[;&|]\s|(?<!\\)\n")

_PASSWORD_OPTIONS = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mariadb", "mongo", "mongosh", "mongodump",
                     "mongorestore", "sshpass", "login", "twine"), ("-p",)),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify"), ("-w",)), "redis-cli": ("-a",),
    **dict.fromkeys(("wandb", "vault"), ("login",)), "curl": ("-u", "-U", "-b", "--user", "--proxy-user")}
"""A program, or a word of one (`docker login`), and the options by which it takes a password, or the word that one follows."""
_OPTIONS = re.compile(r"(?:(?:-|https?:)[^\s\0]*[\s\0]+)*")
"""What may stand between such a word and the password: `wandb login --relogin KEY`."""
_FLAGS = re.compile(r"(?<=-)(?<!--)[#0-46aBfgGiIjJklLMnNOpqRsSvVZ]+(?=[uUb])")
"""What may stand before an option of curl that takes one: `-sSu`."""

_TAG = re.compile(
    r"(?P<before>(?:<(?:name|key|string)>\s*(?P<key>[\w.+-]+)\s*</(?:name|key|string)>\s*)?<(?:[\w.-]+:)?(?P<tag>[\w.-]+))"
    r"(?P<attributes>(?:\s[^<>\0]*)?)>(?:(?P<content>(?:<!\[CDATA\[)?[^<\0]*)(?=</))?")
_NAMING = re.compile(r"\s(?:key|name|id)\s*=\s*['\"]([^'\"]*)", re.IGNORECASE)
_VALUED = re.compile(r"(\svalue\s*=\s*)(\"[^\"]*\"|'[^']*')", re.IGNORECASE)
"""`<password>x</password>`, `<add value="x" key="ApiToken"/>`, `<name>password</name><value>x</value>`."""

_WORD = re.compile(r"[^\s'\"\0]+")
_BARE = re.compile(r"[^\s'\"\0;&|]+")
_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,20}:/{1,2}|(?<![:/])//)"
                  r"(?P<user>[^/@:]*:(?!\d{1,5}(?:[/?#]|$)).*@|[^/@:]+@)", re.IGNORECASE)
_SLASH = r"(?:\\*/|%2f)"
_HOOK = re.compile(
    rf"((?:hooks\.slack\.com{_SLASH}(?:services|workflows|triggers)|discord(?:app)?\.com{_SLASH}api{_SLASH}(?:v\d\d?{_SLASH})?webhooks"
    rf"|webhook\.office\.com{_SLASH}webhookb2){_SLASH}|api\.telegram\.org{_SLASH}bot)[^\s'\"<>\0]+", re.IGNORECASE)
"""URLs that let whoever has them write: their path is the secret."""
_USER_ALONE = ("//", *(f"{scheme}://" for scheme in ("abfs", "abfss", "wasb", "wasbs", "ssh", "git+ssh", "sftp", "rsync")))
"""Schemes in which a name alone before the @ is a container or an account."""
_SHAPE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{12,}|gh[opsu]_[A-Za-z0-9]{12,}|(?:github_pat_|glpat-|nvapi-|npm_|pypi-|dop_v1_|xapp-|tskey-)[\w-]{12,}"
    r"|(?:gsk|r8)_[A-Za-z0-9]{16,}|sk-[A-Za-z_-]{0,40}\d[\w-]{12,}|[rs]k_live_\w{12,}|xox[abeprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{12,}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{12,}|eyJ[\w-]{8,}(?:\.[\w.-]+)?)(?!\w)"
    r"|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[^\0]*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|(?=\0)|\Z)")


def without_secrets(value: object, name: str = "") -> object:
    """Return a text, the words of a command, or a mapping with these in it, with *** for the secrets; other things as is.

    name: what the value is assigned to, which may say that all texts in it are secrets.
    """
    if isinstance(value, str):
        return MARK if hides(name, value) else struck(value)
    if isinstance(value, Mapping):
        return {key: without_secrets(each, str(key) if _strictness(str(key)) else name) for key, each in value.items()}
    if isinstance(value, list | tuple):
        are_words = not name and all(isinstance(word, str) for word in value)
        return words_struck(value) if are_words else [without_secrets(each, name) for each in value]
    return value


def words_struck(words: Sequence[str]) -> list[str]:
    """Return the words of a command with *** for the secrets in them."""
    return struck("".join("\0" + word.replace("\0", "\ufffd") for word in words) + "\0").split("\0")[1:-1]


def struck(text: str) -> str:
    """Return a text with *** for the secrets in it; then without invisible characters and needless percent codes as well."""
    plain = visible = INVISIBLE.sub("", ENCODED.sub(lambda code: chr(int(code[0][-2:], 16)), text) if "%" in text else text)
    lower = visible.lower()
    is_named = _NAMED.search(lower)
    if not is_named and not _SHAPED.search(lower):
        return text
    if is_named and "<" in visible:
        visible = _TAG.sub(_element_struck, visible)
    shown, end = [], 0
    for begin, stop in _assigned(visible) if is_named else ():
        shown += [visible[end:begin], MARK]
        end = stop
    without = without_tokens("".join(shown) + visible[end:])
    return text if without == plain else without


def without_tokens(text: str) -> str:
    """Return a text with *** for what shows without a name to be a secret: for names of runs, which other names may stand in."""
    return _SHAPE.sub(MARK, _HOOK.sub(rf"\1{MARK}", _WORD.sub(_user_struck, text) if "@" in text else text))


def hides(name: str, value: str, *, is_vague: bool = False) -> bool:
    """Return whether a value is a secret, by its name. is_vague: the name may be a word of a sentence."""
    strictness, bare = _strictness(name), value.strip("'\"\\,)}]")
    if not strictness or not bare or _SWITCH.fullmatch(bare):
        return False
    if strictness is _NO_COUNT and not is_vague:
        return not _COUNT.fullmatch(bare)
    return strictness is _ALWAYS or name.lower().startswith("x-") or _RANDOM.fullmatch(bare) is not None


def _strictness(name: str) -> re.Pattern[str] | None:
    """Return what kind of name of a secret it is, None where it is none."""
    if not _STEM.search(name):
        return None
    noun = re.sub(r"[.+-]", "_", _CAMEL.sub("_", name)).lower().strip("_0123456789")
    noun = _VARIANT.sub("", noun)
    return None if _OTHER.search(noun) else next((kind for kind in (_ALWAYS, _NO_COUNT, _IF_RANDOM) if kind.search(noun)), None)


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each value in a text that is a secret by what it is assigned to."""
    at = end = 0
    options: Sequence[str] = ()
    while found := _NAME.search(text, at):
        name = found["name"]
        if _NEXT_COMMAND.search(text, end, found.start()):
            options = ()
        options = options if name in options else _PASSWORD_OPTIONS.get(name, options)
        span = _password(text, found, options) or _value(text, found)
        at, end = found.end(), found.end("name")
        if span:
            if not _STRUCK.fullmatch(text, *span):
                yield span
            at = end = span[1]
        if span or name in options:
            options = [option for option in options if not name.startswith(option)]


def _password(text: str, found: re.Match[str], options: Sequence[str]) -> tuple[int, int] | None:
    """Return where the password is that an option of a program gives."""
    name, begin = found["name"], found.end()
    name = _FLAGS.sub("", name) if "-u" in options and name[0] == "-" else name
    if name not in options:
        if name[:2] not in options:
            return None
        begin = found.end("name") - len(name) + 2   # mysql -pPASSWORD
    elif name[0] != "-":
        return _behind_word(text, found)
    elif text.startswith("-", begin) or found.end("name") == begin:
        return None
    value = (_TO_NUL if text[begin - 1] == "\0" else _VALUE).match(text, begin)
    is_file = name.startswith("-b") and value is not None and "=" not in value[0]   # curl -b cookies.txt
    return value.span() if value and value[0] and not is_file else None


def _behind_word(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Return where the word of a command is that follows a word; in a text it looks random."""
    between = _OPTIONS.match(text, found.end())
    value = (_TO_NUL if "\0" in found["before"] else _BARE).match(text, between.end() if between else found.end())
    is_secret = value and value[0] and found["before"] and ("\0" in found["before"] or _RANDOM.fullmatch(value[0]))
    return value.span() if value and is_secret else None


def _value(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Return where the value is that a name is assigned, if that is a secret."""
    name, sign, begin = found["name"], found["sign"], found.end()
    if not _strictness(name) or not (_is_assignment(found) if sign not in ("", ",") else _takes_next_word(text, found)):
        return None
    opening = text[max(found.start() - 1, 0):found.start()]
    is_header = sign == ":" and name.lower().endswith(("cookie", "authorization"))
    pattern = _TO_NUL if "\0" in found["before"] + found["after"] else _HEADER if is_header else _VALUE
    value = pattern.match(text, begin, begin + _JUDGED)
    if value is None or not _is_secret(text, found, opening, value[0], is_header):
        return None
    whole = _TO_CLOSING[opening].match(text, begin) if sign and not found["quote"] and opening in _TO_CLOSING else None
    return (whole if whole and whole[0] else pattern.match(text, begin) or value).span()


def _is_assignment(found: re.Match[str]) -> bool:
    """Return whether a name and a sign take what stands next: `--password = x` does, and `--password= x` does not."""
    ends_word = "\0" in found["after"] or (found["after"] and found["name"][0] == "-")
    return not ends_word or bool(found["before"]) or found["sign"] == ":"


def _takes_next_word(text: str, found: re.Match[str]) -> bool:
    """Return whether the value of a name may be the next word, without a sign or behind a comma."""
    name, begin, start = found["name"], found.end(), found.start()
    if text.startswith(("--", "'--", '"--'), begin):
        return False
    if found["sign"]:
        return bool(found["quote"]) and text[begin:begin + 1] in "'\"\\" and (
            name.startswith("-") or _CALL.search(text, max(start - 20, 0), start) is not None)
    return bool(found["before"]) and (name.startswith("-") or name.lower() == "bearer"
                                      or _SETTER.search(text, max(start - 200, 0), start) is not None
                                      or _is_variable(text, found))


def _is_variable(text: str, found: re.Match[str]) -> bool:
    """Return whether a name is a variable's, and the next word its value: in a command, alone in a line, or like no word."""
    begin, start = found.end(), found.start()
    value = _WORD.match(text, begin, begin + _JUDGED)
    if not _VARIABLE.fullmatch(found["name"]) or not value or _VARIABLE.fullmatch(value[0]):
        return False
    is_passed_on = _BEHIND_OPTION.search(text, max(start - 60, 0), start) is not None   # mpirun -x HF_TOKEN program
    if "\0" in found["before"]:
        return not is_passed_on
    if found["name"] in _KNOWN and not is_passed_on and not _GOES_ON.fullmatch(value[0]):
        return value[0][0] not in "-([{|<>=&;"
    has_line = _LINE_BEGINS.search(text[max(start - 20, 0):start]) and _REST_OF_LINE.match(text, begin)
    return has_line is not None or _RANDOM.fullmatch(value[0]) is not None


def _is_secret(text: str, found: re.Match[str], opening: str, value: str, is_header: bool) -> bool:
    name, sign = found["name"], found["sign"]
    if opening and opening in "?&;" and not (value[0] in "/~." and name.lower() == "pwd"):
        return True   # a part of a URL, or of a connection string; and PWD is where a program ran
    follows_word = found["after"] in ("", "\0") or _AFTER_WORD.search(text, max(found.start() - 2, 0), found.start()) is not None
    is_word = found["quote"] is None and name[0] != "-" and not is_header
    return hides(name, value, is_vague=is_word and ((sign == ":" and follows_word) or (not sign and name == "bearer")))


def _element_struck(found: re.Match[str]) -> str:
    """Return an element of XML without the value that is a secret by the name of it, or by a name that it holds."""
    names = [name for name in (found["key"], found["tag"], *_NAMING.findall(found["attributes"])) if name and _strictness(name)]
    if not names:
        return found[0]
    content = found["content"] or ""
    if content.strip() and any(hides(name, content.strip()) for name in names):
        content = MARK
    attributes = _VALUED.sub(lambda value: f"{value[1]}{MARK}" if any(hides(name, value[2]) for name in names) else value[0],
                             found["attributes"])
    return f"{found['before']}{attributes}>{content}"


def _user_struck(found: re.Match[str]) -> str:
    user, at, host = found[0].rpartition("@")
    return _URL.sub(lambda url: url[0] if url["scheme"].lower() in _USER_ALONE and ":" not in url["user"]
                    else f"{url['scheme']}{MARK}@", user + at) + host
