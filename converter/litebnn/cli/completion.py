"""`litebnn completion`: prints the script with which a shell completes commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from litebnn.cli.parsing import add_command, file_path

# The shells for which shtab and litebnn write scripts.
_SHELLS = ("bash", "zsh", "fish")


def add_to(commands: Any) -> None:
    """Adds the command `litebnn completion` to argparse's `commands`."""
    parser = add_command(
        commands,
        "completion",
        "print the script with which a shell completes this command",
        "completion bash > ~/.local/share/bash-completion/completions/litebnn",
        "completion zsh > ~/.zfunc/_litebnn",
        "completion fish > ~/.config/fish/completions/litebnn.fish",
    )
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    import shtab

    from litebnn.cli import command_line_parser

    parser = command_line_parser()
    for action in _actions(parser):
        if action.type is file_path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
