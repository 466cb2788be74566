"""What CPU samples and calls of the operating system say of idle time: they name it, and its amount stays what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from nsightlens.diagnosis import words
from nsightlens.diagnosis.findings import Finding, findings
from nsightlens.diagnosis.idle import Leaf
from nsightlens.diagnosis.os_calls import MESSAGES, OTHERS, READS, SLEEPS, THREADS, WRITES, sort_of
from nsightlens.diagnosis.profile_arrays import ProfileArrays, Spans
from nsightlens.diagnosis.sampled_functions import CpuSamples, Sampled, together
from nsightlens.diagnosis.tree import trees
from nsightlens.diagnosis.verdict import Verdict, judge, sums
from tests.diagnosis.made import Call, Piece, recorded

_US = 1000
_Sample = tuple[int, str, str]


def _job(samples: Sequence[_Sample]) -> ProfileArrays:
    """Return a job that idles from 100 to 200 us, in no recorded call; samples: when, in which function and library."""
    profile = recorded([Piece(10 * _US, 100 * _US, (0, 5 * _US)), Piece(200 * _US, 210 * _US, (199 * _US, 205 * _US))],
                       [Call(300 * _US, 301 * _US, "cudaFree")])
    texts = profile.texts

    def code(name: str) -> int:
        texts.append(name)
        return len(texts) - 1 if name else -1

    columns = ([at * _US for at, *_ in samples], [profile.codes["p"]] * len(samples),
               [code(function) for _, function, _ in samples], [code(module) for *_, module in samples])
    profile.samples = CpuSamples(*(np.array(column, np.int64) for column in columns))
    return profile


def _judged(profile: ProfileArrays) -> tuple[Verdict, Finding]:
    tree, = trees(profile, np.zeros(0, np.int64))
    verdict = judge(sums([tree]), None)
    return verdict, next(found for found in findings(verdict) if found.cause in ("host code", "sampled code", "OS calls"))


_EVERY = range(0, 300, 2)


def test_most_samples_name_the_function_and_the_amount_stays() -> None:
    """Those outside of the idle time count for nothing: there it was in other code."""
    verdict, found = _judged(_job([(at, "verify" if 100 < at < 160 else "other", "job") for at in _EVERY]))
    assert (found.cause, found.subject, found.ns, found.action) == ("sampled code", "verify", 99 * _US, "host")
    assert "is in verify (by CPU samples)" in words.sentence(verdict) and "verify, by CPU samples" in words.finding(found)


def test_the_library_is_named_where_no_function_has_half() -> None:
    _, found = _judged(_job([(at, f"f{at}", "libpython3.so") for at in _EVERY]))
    assert found.subject == "libpython3.so"


@pytest.mark.parametrize(("samples", "action"), [
    ([], "sample"),
    ([(at, "f", "job") for at in _EVERY if not 100 < at < 195], "off CPU"),
    ([(at, "f", "job") for at in range(0, 400, 60)], "mark"),
    ([(at, f"f{at}", f"lib{at % 14}.so") for at in _EVERY], "mark"),
])
def test_what_samples_do_not_say_is_not_named(samples: Sequence[_Sample], action: str) -> None:
    """None at all; a thread that did not run; too few for the time; in as many places as there are libraries."""
    verdict, found = _judged(_job(samples))
    assert (found.cause, found.action, found.ns) == ("host code", action, 99 * _US)
    assert "outside of recorded calls" in words.sentence(verdict)


def test_samples_of_another_thread_say_nothing() -> None:
    profile = _job([(at, "f", "job") for at in _EVERY])
    profile.samples = profile.samples._replace(thread=profile.samples.thread + 1)
    assert _judged(profile)[1].action == "mark"


def test_start_up_says_where_the_host_was() -> None:
    profile = _job([(at, "load", "libfs.so") for at in range(-1000, 300, 2)])
    early = recorded([Piece(10 * _US, 100 * _US, (0, 5 * _US))], [Call(-1000 * _US, -999 * _US, "cudaGetDevice")])
    early.texts += profile.texts
    early.samples = profile.samples._replace(function=profile.samples.function + len(early.texts) - len(profile.texts),
                                             module=profile.samples.module + len(early.texts) - len(profile.texts))
    tree, = trees(early, np.zeros(0, np.int64))
    assert "the host in load, by CPU samples" in words.sentence(judge(sums([tree]), None))


def test_samples_in_the_profiler_are_its_time() -> None:
    """Of 20 samples 12 lie in the library that nsys loads into a program, under several functions."""
    seen = Sampled(((("", "[libToolsInjection64.so]"), 12), (("f", "program"), 8)), 20)
    tree, = trees(recorded([Piece(0, 10 * _US), Piece(90 * _US, 100 * _US)]), np.zeros(0, np.int64))
    verdict = judge(sums([replace(tree, idle=[Leaf("unknown", 80 * _US, (), 1, sampled=seen)])]), None)
    assert "the profiler holds the host" in words.sentence(verdict)
    assert next((found.cause, found.action) for found in findings(verdict)) == ("profiler", "less tracing")


def test_samples_of_several_gpus_are_one() -> None:
    several = [Sampled(((("f", "a"), 3),), 10), None, Sampled(((("g", "a"), 5), (("f", "a"), 4)), 9)]
    assert together(several) == Sampled(((("f", "a"), 7), (("g", "a"), 5)), 19) and together([None]) is None


@pytest.mark.parametrize(("name", "sort"), [
    ("pread64", READS), ("getc", READS), ("fread", READS), ("pwrite64", WRITES), ("fclose", WRITES), ("clock_nanosleep", SLEEPS),
    ("pthread_cond_timedwait", THREADS), ("sem_wait", THREADS), ("poll", MESSAGES), ("epoll_wait", MESSAGES), ("reader", OTHERS),
])
def test_calls_of_the_system_are_sorted_by_what_they_are_for(name: str, sort: str) -> None:
    assert sort_of(name) == sort


def test_calls_of_the_system_are_findings_by_what_they_are_for() -> None:
    profile = _job([])
    profile.texts += ["read", "fread", "usleep"]
    first, of = len(profile.texts) - 3, np.full(3, profile.codes["p"])
    profile.os = Spans(np.array([110, 130, 150]) * _US, np.array([130, 140, 160]) * _US, first + np.arange(3), of, of * 0, of)
    verdict, _ = _judged(profile)
    found = {each.subject: (each.ns, each.action) for each in findings(verdict) if each.cause == "OS calls"}
    assert found == {"read, fread": (30 * _US, "read"), "usleep": (10 * _US, "sleep")}
