"""The types of `store.view` (nsightlens/store/view_queries.pyi): an overload per view, so that an IDE completes names and
parameters
and shows what a row is."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent, wrap

from nsightlens.views import registry
from nsightlens.views.header import Param, View

_HEAD = '''"""Generated from the headers of the views by `make docs`."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, overload

import pyarrow as pa

_Names: TypeAlias = str | Sequence[str]
_Numbers: TypeAlias = int | Sequence[int]

class ViewQueries:
'''
_FILTERS = {"run": "_Names", "rank": "_Numbers", "step": "_Numbers", "tool": "_Names", "family": "_Names"}
_NUMBERS = ("_ns", "_s", "_step", "_rank")
_WIDTH = 110
_LAST = """    @overload
    def view(self, name: str, **parameters: object) -> pa.Table:
        \"\"\"Return a view, by its name or by what another tool calls it, as an Arrow table.

        Raises UsageError for an unknown view or parameter. Warns (BalanceWarning) where the rows do not keep the view's books.
        \"\"\"
"""


def stubs() -> str:
    """Return the text of the file."""
    shipped = (view for _, view in sorted(registry.known().items()) if view.is_shipped)
    return _HEAD + "\n".join(_overload(view) for view in shipped) + "\n" + _LAST


def _overload(view: View) -> str:
    names = ", ".join(f'"{name}"' for name in (view.name, *(alias.name for alias in view.aliases if not alias.parameters)))
    own = [f"{param.name}: {_type(param)} = ..." for param in view.params]
    columns = dict(view.columns)
    filters = [f"only_{name}: {kind} | None = ..." for name, kind in _FILTERS.items() if name in columns]
    asked = ",\n".join(f"        {text}" for text in (f"name: Literal[{names}]", "*", *own, *filters, "**only_columns: object"))
    return f"    @overload\n    def view(\n        self,\n{asked},\n    ) -> pa.Table:\n{_doc(view)}"


def _doc(view: View) -> str:
    """Return the documentation of the view as a docstring: what a row is, the parameters, the columns."""
    lines = [*_paragraph(view.doc)]
    for title, texts in (("Parameters", [(param.name, param.doc) for param in view.params]), ("Columns", view.columns)):
        lines += ["", f"{title}:", *(line for name, text in texts for line in _item(name, text))] if texts else []
    text = "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
    return indent(f'"""{text}\n"""\n', " " * 8, lambda line: bool(line.strip()))


def _paragraph(text: str) -> Iterator[str]:
    yield from wrap(text, _WIDTH)


def _item(name: str, text: str) -> list[str]:
    return wrap(f"{name}: {text}", _WIDTH, initial_indent="    ", subsequent_indent="        ")


def _type(param: Param) -> str:
    """Return the type of a parameter; of one of a macro without a default, a number where its name says so."""
    if param.default is None:
        kind = int if param.type is str and param.name.endswith(_NUMBERS) else param.type
        return f"{kind.__name__} | None"
    return param.type.__name__


if __name__ == "__main__":
    import sys

    sys.stdout.write(stubs())
