"""The benchmarks: each makes its inputs, measures nsightlens and its peers in turn, and returns its tables."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks import inputs, peers
from benchmarks.inputs import Input
from benchmarks.measure import Candidate, Run, measure, run_once
from benchmarks.report import MB, Table, dearer, faster, quicker, smaller

ROOT = Path(__file__).parents[1]
OURS = "nsightlens ingest"
HTA = "HolisticTraceAnalysis load"
MOST_MB, MOST_MB_ANSWERING, MOST_MB_A_VIEW = 400, 500, 300
QUESTIONS = ("summary", "show queue_length", "show step_breakdown", "show idle_breakdown", "show kernel_launch_summary",
             "show temporal_breakdown", "show busy_time", "show kernel_summary")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the inputs are."""

    kineto_bytes: tuple[int, ...]
    nsys_kernels: int
    names: int
    ncu_launches: int
    summary_kernels: int
    startups: int


SIZES = {
    "small": Sizes((4 * MB, 12 * MB), 20_000, 200, 50, 50_000, 3),
    "full": Sizes((420 * MB, 1200 * MB), 5_000_000, 2000, 5000, 10_000_000, 11),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a benchmark needs to know: sizes, rounds, where inputs are kept, and the trace that is replicated."""

    sizes: Sizes
    rounds: int
    folder: Path
    trace: Path
    before: Path | None = None
    """A checkout of an earlier version, to ask the same of it."""


class WrongResultError(Exception):
    """A program was fast but did not do the work."""


def kineto(setting: Setting) -> Iterator[Table]:
    """Yield a table per size of trace."""
    for size in setting.sizes.kineto_bytes:
        made = inputs.kineto(setting.folder, setting.trace, size)
        found = find_spec("hta") is not None
        hta = _peer(HTA, "hta-load", made.run_dir) if found else None
        plain = _peer("json.load (no table)", "json-load", made.file)
        with _ingest(setting, made) as ours:
            programs = [ours, *([hta] if hta else []), plain]
            measure(programs, setting.rounds)
        yield Table(
            f"Kineto JSON, {made.truth['bytes'] / MB:,.0f} MB",
            f"{made.truth['events']:,} events, {made.truth['kernels']:,} kernels: the events of `{setting.trace.name}`, "
            f"{made.truth['copies']} times over with shifted times and ids. Ours: whole ingest into a fresh, ready store.",
            programs, [faster(10, ours, hta, HTA), smaller(MOST_MB, ours)], missing=[] if found else ["HolisticTraceAnalysis"])


def nsys(setting: Setting) -> Iterator[Table]:
    """Yield the table of the nsys export."""
    made = inputs.nsys(setting.folder, setting.sizes.nsys_kernels, setting.sizes.names)
    join = _peer("pandas join", "pandas-join", made.file, made)
    group = _peer("one GROUP BY (pandas over SQLite)", "pandas-group-by", made.file, made)
    with _ingest(setting, made) as ours:
        measure([ours, join, group], setting.rounds)
    yield Table(
        f"nsys SQLite, {made.truth['kernels']:,} kernels",
        f"{made.truth['bytes'] / MB:,.0f} MB, {made.truth['calls']:,} RUNTIME rows, {setting.sizes.names:,} kernel names. "
        "Ours: whole ingest, `--no-answers`. The join: kernels with calls (by correlation and process) and names. "
        "The GROUP BY: a sum per name.",
        [ours, join, group], [faster(4, ours, join, join.name), faster(1, ours, group, group.name), smaller(MOST_MB, ours)])


def answers(setting: Setting) -> Iterator[Table]:
    """Yield the table of ingest and `summary` with and without kept answers."""
    made = inputs.nsys(setting.folder, setting.sizes.nsys_kernels, setting.sizes.names)
    with tempfile.TemporaryDirectory(dir=setting.folder) as scratch:
        plain, kept, cache = (Path(scratch) / name for name in ("bare", "kept", "cache"))  # hints on the page name the store
        pages: dict[Path, str] = {}

        def ingest(name: str, store: Path, *options: str) -> Candidate:
            return Candidate(name, [*ingest_command(made.run_dir, store), *options],
                             lambda: shutil.rmtree(store, ignore_errors=True), lambda run: check_store(store, made.truth))

        def summary(name: str, store: Path) -> Candidate:
            def check(run: Run) -> None:
                pages[store] = run.output.replace(store.name, "")
                if len(set(pages.values())) > 1:
                    raise WrongResultError(f"{name}: another page than from the other store")

            return Candidate(name, [*_python(ROOT, cache), "-m", "nsightlens", "summary", "--store", str(store)],
                             lambda: shutil.rmtree(cache, ignore_errors=True), check)

        programs = [
            ingest("ingest --no-answers", plain, "--no-answers"), ingest("ingest --answers", kept, "--answers"),
            ingest("ingest", kept), summary("summary, computed", plain), summary("summary, from answers", kept)]
        measure(programs, setting.rounds)
    yield Table(
        f"Answers, {made.truth['kernels']:,} kernels",
        "The export of the table before. `ingest` computes and keeps the views that `summary` reads, `ingest --answers` all of a "
        "profile. Both pages must be the same.",
        programs, [
            dearer(1.6, programs[2], programs[0]), smaller(MOST_MB_ANSWERING, programs[2], programs[2].name),
            quicker(2, programs[-1].wall_s, programs[-1].name), smaller(MOST_MB, programs[-1], programs[-1].name)])


def questions(setting: Setting) -> Iterator[Table]:
    """Yield the table of what is asked after an ingest, now and of the version in `setting.before`; no cache is warm."""
    made = inputs.nsys(setting.folder, setting.sizes.nsys_kernels, setting.sizes.names)
    with tempfile.TemporaryDirectory(dir=setting.folder) as scratch:
        ours = {question: _question(question, Path(scratch) / "now", ROOT) for question in QUESTIONS}
        theirs = {question: _question(question, Path(scratch) / "before", setting.before, ", before")
                  for question in QUESTIONS} if setting.before else {}
        for where, store in ((ROOT, "now"), (setting.before, "before")):
            if where:
                run_once([*_python(where, Path(scratch)), *ingest_command(made.run_dir, Path(scratch) / store)[1:]])
                if where == ROOT:  # a store of an earlier schema is nothing that this version reads
                    check_store(Path(scratch) / store, made.truth)
        pairs = [[ours[question], *([theirs[question]] if theirs else [])] for question in QUESTIONS]
        for pair in pairs:
            measure(pair, setting.rounds)
    views = [program for question, program in ours.items() if question != "summary"]
    yield Table(
        f"Questions, {made.truth['kernels']:,} kernels",
        "The export of the tables before, after `ingest`. The whole command, with nothing in the user's cache."
        + (f" Before: {setting.before.name}." if setting.before else ""),
        [program for pair in pairs for program in pair],
        [quicker(2, ours["summary"].wall_s, "summary"), smaller(MOST_MB, ours["summary"], "summary"),
         *(quicker(1, view.wall_s, view.name) for view in views), *(smaller(MOST_MB_A_VIEW, view, view.name) for view in views)],
        base_of={peer.name: own for own, *peers_ in pairs for peer in (own, *peers_)})


def _question(question: str, store: Path, where: Path | None, version: str = "") -> Candidate:
    """Return the candidate that asks the package at `where`; its cache is in the store's folder, and empty at the start."""
    assert where
    cache = store.parent / "cache"
    return Candidate(question + version, [*_python(where, cache), "-m", "nsightlens", *question.split(), "--store", str(store)],
                     lambda: shutil.rmtree(cache, ignore_errors=True))


def _python(where: Path, cache: Path) -> list[str]:
    """Return the start of a command that runs Python with the package at `where`; -P: not that of the working directory."""
    return ["env", f"PYTHONPATH={where}", f"XDG_CACHE_HOME={cache}", sys.executable, "-P"]


def ncu(setting: Setting) -> Iterator[Table]:
    """Yield the tables of the wide and the details page."""
    for title, make in (("ncu raw page (wide)", inputs.ncu_wide), ("ncu details page", inputs.ncu_details)):
        made = make(setting.folder, setting.sizes.ncu_launches)
        bare = _peer("pandas.read_csv", "pandas-csv", made.file)
        with _ingest(setting, made) as ours:
            measure([ours, bare], setting.rounds)
        yield Table(
            f"{title}, {made.truth['kernels']:,} launches",
            f"{made.truth['bytes'] / MB:,.1f} MB, {made.truth['rows']:,} rows. Ours: whole ingest. pandas: the bare read, which "
            "takes the units row for data and understands no unit, no label and no launch.",
            [ours, bare], [faster(1, ours, bare, bare.name)])


def summary(setting: Setting) -> Iterator[Table]:
    """Yield the table of kernel_summary."""
    made = inputs.nsys(setting.folder, setting.sizes.summary_kernels, setting.sizes.names, launches=False)
    with tempfile.TemporaryDirectory(dir=setting.folder) as scratch:
        store, parquet = Path(scratch) / "store", Path(scratch) / "kernels.parquet"
        _fill(store, parquet, made)
        ours = _peer("nsightlens kernel_summary", "store-summary", store, made, rows=None)
        pandas = _peer("pandas groupby", "pandas-summary", parquet, made, rows=None)
        measure([ours, pandas], setting.rounds, warm=True)
    steps = {program.name: _step(program) for program in (ours, pandas)}
    yield Table(
        f"kernel_summary, {made.truth['kernels']:,} kernels",
        "Count, total, mean, median, minimum, maximum, deviation, p5 and p95 per kernel name. Wall: the whole process, "
        "with opening the store, or reading Parquet (names as categories) into a DataFrame. Step: only the computation.",
        [ours, pandas], [quicker(1, steps[ours.name], "the computation")], steps)


def _step(program: Candidate) -> float:
    """Return the median of the seconds that the program itself printed."""
    return statistics.median(float(peers.found(run.output)["seconds"]) for run in program.runs)


def startup(setting: Setting) -> Iterator[Table]:
    """Yield the table of start-up times."""
    script = Path(sys.executable).parent / "nsightlens"
    command = [str(script)] if script.is_file() else [sys.executable, "-m", "nsightlens"]
    ours = Candidate("nsightlens --help", [*command, "--help"])
    imported = Candidate("import nsightlens", [sys.executable, "-c", "import nsightlens"])
    bare = Candidate("python -c pass", [sys.executable, "-c", "pass"])
    measure([ours, imported, bare], setting.sizes.startups, warm=True)
    yield Table("Start-up", f"Median of {setting.sizes.startups}.", [ours, imported, bare],
                [quicker(0.15, ours.wall_s, "`nsightlens --help`")])


BENCHMARKS: dict[str, Callable[[Setting], Iterator[Table]]] = {
    "kineto": kineto, "nsys": nsys, "answers": answers, "questions": questions,
    "ncu": ncu, "summary": summary, "startup": startup,
}


@contextmanager
def _ingest(setting: Setting, made: Input) -> Iterator[Candidate]:
    """Give the ingest of an input into a store that is fresh in each run; afterwards the store must hold what the input holds."""
    with tempfile.TemporaryDirectory(dir=setting.folder) as scratch:
        store = Path(scratch) / "store"
        command = [*ingest_command(made.run_dir, store), "--no-answers"]  # no peer computes them
        yield Candidate(OURS, command, lambda: shutil.rmtree(store, ignore_errors=True),
                        lambda run: check_store(store, made.truth))


def ingest_command(run_dir: Path, store: Path) -> list[str]:
    """Return the command line of one whole ingest."""
    return [sys.executable, "-m", "nsightlens", "ingest", str(run_dir), "--store", str(store), "--quiet"]


def check_store(store: Path, truth: dict[str, int]) -> None:
    """Raise WrongResultError unless the store holds exactly the kernels of the input, to the nanosecond."""
    import nsightlens as nl

    with nl.open(store) as opened:
        kernels, total = opened.sql("SELECT count(*) AS n, sum(duration_ns)::BIGINT AS ns FROM kernels").to_pylist()[0].values()
    if (kernels, total) != (truth["kernels"], truth["kernel_ns"]):
        raise WrongResultError(f"{store} holds {kernels} kernels of {total} ns, not {truth['kernels']} of {truth['kernel_ns']}")


def _peer(name: str, program: str, path: Path, made: Input | None = None, rows: str | None = "kernels") -> Candidate:
    """Return a peer; with `made`, what it prints must agree with that input: the total time, and `rows` of its truth."""

    def check(run: Run) -> None:
        found = peers.found(run.output)
        expected = {"kernel_ns": made.truth["kernel_ns"], **({"rows": made.truth[rows]} if rows else {})} if made else {}
        for key, value in expected.items():
            if found[key] != value:
                raise WrongResultError(f"{name}: {key} is {found[key]}, not {value}")

    return Candidate(name, peers.command(program, path), check=check)


def _fill(store: Path, parquet: Path, made: Input) -> None:
    """Make the store, and the same kernels as the Parquet file that pandas reads: names dictionary-encoded, so categories."""
    import pyarrow.parquet as pq

    import nsightlens as nl

    with nl.ingest(made.run_dir, store) as opened:
        kernels = opened.sql("SELECT run, tool, name, duration_ns FROM kernels")
    for index, column in enumerate(("run", "tool", "name")):
        kernels = kernels.set_column(index, column, kernels[column].dictionary_encode())
    pq.write_table(kernels, parquet)
