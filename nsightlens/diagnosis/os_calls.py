"""What a thread does in calls of the operating system, by their names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

READS, WRITES, SLEEPS, THREADS, MESSAGES, PROGRAMS, MEMORY, DRIVER, OTHERS = (
    "reads", "writes", "sleeps", "threads", "messages", "programs", "memory", "driver", "others")
_SORTS = {
    READS: (r"p?readv?(64)?|preadv2?(64)?|f?read(_unlocked)?|f?getc\w*|fgets\w*|getline|getdelim|fscanf|"
            r"(f?open|openat|f?stat|lseek)(64)?"),
    WRITES: (r"p?writev?(64)?|pwritev2?(64)?|f?write(_unlocked)?|f?putc\w*|f?puts\w*|[vf]*printf|fflush\w*|"
             r"f(data)?sync|sync|fclose"),
    SLEEPS: r"\w*sleep", THREADS: r"pthread_(cond|join|mutex|rwlock|barrier|spin)\w*|sem_(timed|clock)?wait|futex\w*",
    MESSAGES: r"p?poll|p?select|epoll_p?wait\d*|recv\w*|send(msg|mmsg|to)?|accept\d*|connect|sigtimedwait|sigwait\w*",
    PROGRAMS: r"wait(4|3|pid|id)?|v?fork|exec\w*|posix_spawnp?|system|popen|pclose",
    MEMORY: r"mmap(64)?|munmap|mremap|madvise|mprotect|s?brk|mlock\d*", DRIVER: "ioctl",
}


def sort_of(name: str) -> str:
    """Return what a call is for; OTHERS where its name does not say it."""
    return next((sort for sort, pattern in _SORTS.items() if re.fullmatch(pattern, name)), OTHERS)


def by_sort(named: Iterable[tuple[str, int]]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return calls with their ns by what they are for, that which takes most first."""
    names_by_sort: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, ns in named:
        names_by_sort[sort_of(name)].append((name, ns))
    return sorted(names_by_sort.items(), key=lambda item: (-sum(ns for _, ns in item[1]), item[0]))
