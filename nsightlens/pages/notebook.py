"""Arrow tables in a notebook: IPython shows them with units, as `nl.show` does."""

from __future__ import annotations

from typing import Any


def show_tables(shell: Any) -> None:
    """Let an IPython shell show each pyarrow.Table as HTML, unless something else does already. Imports nothing heavy."""
    html = shell.display_formatter.formatters["text/html"]
    if ("pyarrow.lib", "Table") not in html.deferred_printers:
        html.for_type_by_name("pyarrow.lib", "Table", _as_html)


def _as_html(table: Any) -> str:
    from nsightlens.pages.display_table import DisplayTable

    return DisplayTable(table)._repr_html_()
