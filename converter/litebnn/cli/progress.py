"""A progress line on the terminal. Log messages of native libraries are hidden while it is shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from litebnn.errors import printable


@contextmanager
def progress(step: str) -> Iterator[Callable[[str], None]]:
    """Shows the current step of a command if stderr is a terminal.

    Native log messages of TensorFlow and the runtimes are dropped until the `with` block ends.

    Args:
        step: the description of the first step.

    Returns:
        A function that takes the description of each next step.
    """
    with _native_logs_silenced() as terminal:
        if not terminal.isatty():
            yield lambda step: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(file=terminal), transient=True) as bar:
            task = bar.add_task(printable(step), total=None)
            yield lambda step: bar.update(task, description=printable(step))


@contextmanager
def counting(what: str) -> Iterator[tuple[Callable[[int, int | None], None], Callable[[str], None]]]:
    """Shows the number of finished items, with rate and remaining time, if stderr is a terminal.

    Args:
        what: the name of the counted items, such as "images".

    Returns:
        Two functions. The first takes the number of finished items and the total (None if it is unknown). The second
        prints a line on stderr.
    """
    with _native_logs_silenced() as terminal:
        if not terminal.isatty():
            yield lambda done, total: None, lambda line: print(line, file=terminal, flush=True)
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        rate = TextColumn("{task.fields[rate]}")
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn(what), rate, TimeRemainingColumn())
        console = Console(file=terminal, markup=False, emoji=False, highlight=False)
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=None, rate="")

            def count(done: int, total: int | None) -> None:
                speed = bar.tasks[0].speed
                bar.update(task, completed=done, total=total, rate=f"{speed:.1f}/s" if speed else "")

            yield count, console.print


@contextmanager
def _native_logs_silenced() -> Iterator[TextIO]:
    """Redirects the process's stderr to /dev/null; yields the original stderr, for litebnn's own progress line."""
    with os.fdopen(os.dup(2), "w") as terminal, Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield terminal
        finally:
            os.dup2(terminal.fileno(), 2)
