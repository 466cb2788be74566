"""The methods that ask a store for a view. Their types per view, for IDEs, are in view_queries.pyi, made of the headers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from nsightlens.public_calls import gated

if TYPE_CHECKING:
    import pyarrow as pa


class ViewQueries(ABC):
    """A store that answers with views; what it gives is in the class that inherits from this."""

    @gated
    def view(self, name: str, **parameters: object) -> pa.Table:
        """Return a view, by its name or by what another tool calls it, as an Arrow table.

        parameters: those of the view, and COLUMN=value, or a list of values, for any of its columns (only_COLUMN= where a
        parameter has that name); text may have * for any characters: store.view("kernel_summary", rank=[0, 1], name="*gemm*").
        store.views has all views, store.views["kernel_summary"] what its parameters and columns mean; nl.show(table) prints a
        table with units.

        Raises UsageError for an unknown view or parameter, for a filter on a run, rank, step, tool or family that the store does
        not have, and for one on a name that the view does not have.

        Warns (BalanceWarning) where the view states books (`@balance`) that its rows do not keep.
        """
        return self._view(name, parameters)

    @abstractmethod
    def _view(self, name: str, parameters: dict[str, object]) -> pa.Table: ...
