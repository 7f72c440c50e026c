"""Runs code blocks of the documents in one process, in the current folder.

Usage:

    python -m tests.docs.run_blocks < BLOCKS > RESULTS

BLOCKS is JSON: a list of objects with the fields of `tests.support.documents.Block`. RESULTS has one line for each
block, with the error or empty. All Python blocks of a document share one namespace.
"""

import contextlib
import json
import os
import subprocess
import sys
import traceback
from collections import defaultdict
from typing import Any

from toolchains.targets import ROOT

SECONDS = 180  # the time limit of a block of commands, on a busy machine


def run_python(text: str, name: str, namespace: dict[str, Any]) -> str:
    """Runs a Python block, and returns its error; empty if it succeeds."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            exec(compile(text, name, "exec"), namespace)
    except (Exception, SystemExit):
        return traceback.format_exc()
    return ""


def run_shell(text: str) -> str:
    """Runs a block of shell commands, and returns its error; empty if it succeeds.

    The block may call `invoke`, which finds the tasks in the project's tasks.py although the block runs elsewhere.
    """
    invoke = f'invoke() {{ "{sys.executable}" -m invoke --search-root="{ROOT}" "$@"; }}'
    command = ["bash", "-euo", "pipefail", "-c", f"{invoke}\n{text}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"it takes more than {SECONDS} s: say so in a comment, <!-- not run: … -->"
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}" if done.returncode else ""


def main() -> None:
    # Frameworks write to stdout too. Therefore stdout is redirected, and the results go to a copy of its file
    # descriptor.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    namespaces: dict[str, dict[str, Any]] = defaultdict(lambda: {"__name__": "__main__"})
    for block in json.load(sys.stdin):
        name, namespace = f"{block['document']}, line {block['line']}", namespaces[block["document"]]
        failure = run_python(block["given"], f"what is given for {name}", namespace)
        if not failure:
            is_python = block["language"] == "python"
            failure = run_python(block["text"], name, namespace) if is_python else run_shell(block["text"])
        print(json.dumps(failure), file=results, flush=True)


if __name__ == "__main__":
    main()
