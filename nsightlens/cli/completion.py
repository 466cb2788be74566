"""nsightlens completion: the script that makes a shell complete commands, options and values."""

from __future__ import annotations

import click

from nsightlens.terminal.output import echo

_WHERE = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/nsightlens.fish"}
_INSTEAD = {
    "COMPREPLY+=($value)": 'COMPREPLY+=("$(printf %q "$value")")',
    "    return 0\n": "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n    return 0\n",
    "_describe -V unsorted completions_with_descriptions -U":
        'if [[ "$completions_with_descriptions[1]" == *=:* ]]; then\n'
        "            _describe -V unsorted completions_with_descriptions -U -S ''\n"
        "        else\n"
        "            _describe -V unsorted completions_with_descriptions -U\n"
        "        fi",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_WHERE)))
def command(shell: str) -> None:
    """Print the completion script for SHELL. It completes commands and options, views and their parameters, plots, and the
    runs, ranks, tools, steps, families and kernels of the store.

    For the current shell only, or permanently (bash 4.4 or later; zsh needs `autoload -Uz compinit && compinit` before it):

    \b
    eval "$(nsightlens completion bash)"
    nsightlens completion bash >> ~/.bashrc
    nsightlens completion zsh >> ~/.zshrc
    nsightlens completion fish > ~/.config/fish/completions/nsightlens.fish
    """
    from click.shell_completion import get_completion_class

    from nsightlens.cli import root

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    echo(_adapted(completion_class(root, {}, "nsightlens", "_NSIGHTLENS_COMPLETE").source()))


def _adapted(script: str) -> str:
    """Return the script of a shell so that no word is more than a word (bash puts them on the line as they are), and no space
    follows KEY=, where the value comes (fish adds none by itself)."""
    for line, instead in _INSTEAD.items():
        script = script.replace(line, instead)
    return script
