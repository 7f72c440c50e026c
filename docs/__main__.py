"""Builds the site: this checkout in build/docs, and with --tags each release, a tag vN, in build/docs/vN.

The sidebars list the versions. A release is built from its own sources and settings, so that it does not change.

Usage:

    python -m docs [--tags | --generate]

--generate instead rewrites the parts of the documents that the code knows (docs/generated.py).
"""

import argparse
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from docs import generated
from toolchains.command_line import run
from toolchains.fetch.lock import find
from toolchains.fetch.npm import take_files
from toolchains.targets import BUILD, ROOT, ToolkitError

MERMAID = find("mermaid")
SCRIPTS = BUILD / f"mermaid-{MERMAID.version}"
SITE = BUILD / "docs"


def fetch_scripts() -> None:
    """Fetches the script that draws the diagrams in a reader's browser, so that the site depends on no other one."""
    if not SCRIPTS.is_dir():
        BUILD.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as work:
            take_files(MERMAID, {"dist/mermaid.min.js": "mermaid.min.js"}, Path(work, "new"))
            Path(work, "new").rename(SCRIPTS)


def build(source: Path, out: Path, versions: list[str], site: str) -> None:
    """Rebuilds the site of one version; `site` is the relative path to the newest version's.

    Raises:
        ToolkitError: Sphinx reported an error or a warning. The previous site is kept.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    values = ["-A", f"versions={','.join(versions)}", "-A", f"site={site}", "-D", f"html_static_path=_static,{SCRIPTS}"]
    with tempfile.TemporaryDirectory(dir=out.parent) as work:
        # Starts without Sphinx's cache, which would hide warnings of unchanged pages.
        fresh, memory = Path(work, "site"), Path(work, "memory")
        options: list[str | Path] = ["-W", "--keep-going", "-q", "-j", "auto", "-d", memory, "-c", source / "docs"]
        command = [sys.executable, "-m", "sphinx", *options, *values, source, fresh]
        if subprocess.run(command, cwd=source).returncode:
            raise ToolkitError(f"the site of {source} has mistakes: see above")
        shutil.rmtree(out, ignore_errors=True)
        fresh.rename(out)


def releases() -> list[str]:
    """The tags of releases, newest first."""
    command = ["git", "tag", "--list", "v[0-9]*", "--sort=-version:refname"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        raise ToolkitError(f"git cannot list the releases: {listed.stderr.strip()}")
    return listed.stdout.split()


def unpack(tag: str, folder: Path) -> None:
    """Writes the files of a release into a folder."""
    archive = subprocess.run(["git", "archive", tag], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def build_all(tags: bool, generate: bool) -> None:
    """Builds the site of this checkout, and on request those of the releases. With `generate`, rewrites documents."""
    if generate:
        generated.generate()
        return
    versions = releases() if tags else []
    fetch_scripts()
    build(ROOT, SITE, versions, "")
    for tag in versions:
        with tempfile.TemporaryDirectory(prefix="litebnn-docs-") as source:
            unpack(tag, Path(source))
            build(Path(source), SITE / tag, versions, "../")
    print(f"the site: {SITE / 'index.html'}")


def main() -> int:
    """Runs the command line and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs", description="Build the site.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--tags", action="store_true", help="build the site of each release too")
    what.add_argument("--generate", action="store_true", help="instead rewrite the generated parts of the documents")
    return run(parser, build_all, None)


if __name__ == "__main__":
    sys.exit(main())
