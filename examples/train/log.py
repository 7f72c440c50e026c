"""Logs the course of a training, on stdout and for TensorBoard."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

FOLDER = "logs"


class Log:
    """Prints lines, and writes numbers into a folder for TensorBoard if its package is installed.

    Args:
        output: the folder of the training.
        is_silent: True for all processes but the first one, so that only one process writes.
    """

    def __init__(self, output: Path, is_silent: bool) -> None:
        self.is_silent = is_silent
        self.writer = None if is_silent else _writer(output / FOLDER)
        if self.writer is None:
            self.line("no logs for TensorBoard are written: pip install tensorboard")

    def line(self, text: str) -> None:
        if not self.is_silent:
            print(text, flush=True)

    def start(self, step: int) -> None:
        """Makes TensorBoard ignore the numbers after `step`, which an interrupted training has written."""
        if self.writer is not None:
            from tensorboard.compat.proto.event_pb2 import SessionLog

            self._write(step + 1, session_log=SessionLog(status=SessionLog.START))

    def scalars(self, step: int, steps: int, values: dict[str, float], seconds: float | None = None) -> None:
        """Logs named numbers after a step, together with the time since the last call."""
        text = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
        self.line(f"step {step} of {steps}: {text}" + ("" if seconds is None else f", {seconds:.1f} s"))
        if self.writer is not None:
            from tensorboard.compat.proto.summary_pb2 import Summary

            found = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
            self._write(step, summary=Summary(value=found))

    def _write(self, step: int, **content: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        assert self.writer is not None
        self.writer.add_event(Event(wall_time=time.time(), step=step, **content))
        self.writer.flush()


def _writer(folder: Path) -> Any:
    try:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        return None
    return EventFileWriter(str(folder))
