"""What the shell completes: views, parameters and plots, and the runs, ranks, tools, families, steps and kernels of the store.

Each function takes what click gives it (the context so far, the parameter, the word begun) and returns the words that fit. A
store that cannot be opened completes nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from nsightlens.errors import NsightlensError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from nsightlens.store.store import Store
    from nsightlens.views.header import View

Complete = Callable[[click.Context, click.Parameter, str], "list[str] | list[CompletionItem]"]
_MOST = 200


def store_value(what: str) -> Complete:
    """Return the function that completes a value of the store: run, tool, rank, step, family or kernel."""
    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        return _beginning(begun, _store_values(context, what))

    return complete


def capture_paths(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the captures of the store, or of --run, by their paths in the table files."""
    query = "SELECT path FROM files WHERE outcome <> 'ignored' AND coalesce(run = ?, true) ORDER BY ALL"
    return _beginning(begun, _in_store(context, lambda store: store.sql(query, [context.params.get("run")])["path"].to_pylist()))


def baselines(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the baselines."""
    from nsightlens.gate.baselines import names

    return _beginning(begun, names())


def view_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the views, and what other tools call them, each with its first sentence."""
    from click.shell_completion import CompletionItem

    known = _views(context)
    texts = {**{name: view.summary for name, view in known.items()},
             **{alias.name: f"= {view.name}" for view in known.values() for alias in view.aliases}}
    return [CompletionItem(name, help=texts[name]) for name in sorted(texts) if name.startswith(begun)]


def plot_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the views that can be drawn."""
    import nsightlens as nl

    try:
        return _beginning(begun, nl.plots.PLOTS)
    except NsightlensError:  # without matplotlib
        return []


def pairs(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return KEY= of the parameters and columns of the view, and behind KEY= the values that the store has.

    bash breaks words at =, so that what was typed may come as two words, KEY and =, before the value.
    """
    from click.shell_completion import CompletionItem

    from nsightlens.views import registry

    name = context.params.get("view") or context.params.get("name")
    try:
        view, _ = registry.named(str(name), _views(context))
    except NsightlensError:
        return []
    broken = _key_before([*(context.params.get("pairs") or ())])
    key, equals, value = (broken, "=", begun) if broken else begun.partition("=")
    if not equals:
        texts = {**{f"{param.name}=": param.doc for param in view.params}, **{f"only_{name}=": doc for name, doc in view.columns}}
        return [CompletionItem(name, help=text) for name, text in texts.items() if name.startswith(begun)]
    values = _beginning(value, _store_values(context, key.removeprefix("only_").removeprefix("which_")))
    return [CompletionItem(one if broken else f"{key}={one}") for one in values]


def _key_before(words: list[str]) -> str | None:
    """Return the KEY whose value is typed now, where the words before are KEY = or KEY, which click leaves of them; else None."""
    if words[-1:] == ["="]:
        return words[-2] if len(words) > 1 else None
    return words[-1] if words and "=" not in words[-1] and words[-2:-1] != ["="] else None


def _views(context: click.Context) -> dict[str, View]:
    """Return the views of nsightlens and of the user's folder."""
    from nsightlens.views import folder, registry

    try:
        return {**registry.known(), **registry.public(folder.load(folder.locate(context.params.get("views"))))}
    except NsightlensError:
        return registry.known()


def _store_values(context: click.Context, what: str) -> list[str]:
    """Return the values of the store of this command line, those of a number in its order."""
    from nsightlens.store.filter_values import VALUES

    return [str(one) for one in _in_store(context, lambda store: store.values_of(what))] if what in VALUES else []


def _in_store(context: click.Context, ask: Callable[[Store], list[Any]]) -> list[Any]:
    """Return the answer of the store of this command line; nothing where it cannot be opened."""
    import nsightlens as nl

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with nl.open(context.params.get("store")) as store:
                return ask(store)
    except NsightlensError:
        return []


def _beginning(begun: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(begun)][:_MOST]
