"""Words of commands that people paste: each arrives as what was meant, in a POSIX shell and in Python.

A name from a capture may hold anything that a file name may. Whatever is shown as a command is made here, so that pasted into
sh, bash or dash it does what it says and nothing else.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePath

from nsightlens.terminal.printable import printable

_PLAIN = re.compile(r"/|\.\.?/|\w+://|[\w.][^:/]*(?:/|\Z)")
"""The beginning of a path that no program takes for anything else: an option (-y), a list of files (@x), another host (x:y)."""


class Verbatim(str):
    """What people copy as it stands, such as a command line: no line is broken in it."""

    __slots__ = ()


def quoted(word: str | PurePath) -> str:
    r"""Return a word as a POSIX shell takes it; of a path that begins as an option or a host, as ./-y.

    Characters without a sign of their own become "$(printf 'a\012b')", which shows what it holds and stays on one line. Only
    line ends at the end of a word, which a shell would cut there, stand in quotes as they are.
    """
    text = str(word)
    if isinstance(word, PurePath) and not _PLAIN.match(text):
        text = f"./{text}"
    if not text.isprintable():
        body = text.rstrip("\n")
        ends = text[len(body):]
        return (f"\"$(printf '{''.join(map(_octal, body))}')\"" if body else "") + (f"'{ends}'" if ends else "")
    return shlex.quote(text)


def _octal(character: str) -> str:
    """Return a character for the format of printf: letters, digits and a few signs as they are."""
    if character.isalnum() or character in "_./,:=+":
        return character
    errors = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", errors))


def shell_line(*words: str | PurePath) -> Verbatim:
    """Return the command line of a program and its arguments."""
    return Verbatim(" ".join(map(quoted, words)))


def in_python(text: str) -> str:
    """Return a text as Python writes it, in double quotes, on one line."""
    return '"' + printable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'
