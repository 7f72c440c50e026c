"""Downloads files from packages of the npm registry, and checks each package's hash."""

import http.client
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from pathlib import Path

from toolchains.fetch.lock import Locked
from toolchains.probes import NPM
from toolchains.targets import ToolkitError


def take_files(package: Locked, files: dict[str, str], work: Path) -> None:
    """Copies files and folders out of a package. `files` maps paths in the package to paths in `work`."""
    with tempfile.TemporaryDirectory(prefix="litebnn") as temporary:
        archive = _download(package, Path(temporary))
        package.verify(archive)
        with tarfile.open(archive) as tar:
            for member in filter(tarfile.TarInfo.isfile, tar):
                for source, target in files.items():
                    inside = f"package/{source}"
                    content = tar.extractfile(member)
                    if content and (member.name == inside or member.name.startswith(f"{inside}/")):
                        path = work / (target + member.name.removeprefix(inside))
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(content.read())


def _download(package: Locked, folder: Path) -> Path:
    """Downloads the archive of a package: from npm's configured registry if npm is installed, otherwise from the public
    one."""
    archive = folder / f"{package.package}-{package.version}.tgz"
    what = f"{package.package} {package.version}"
    if shutil.which("npm"):
        command = ["npm", "pack", "--silent", f"{package.package}@{package.version}"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if run.returncode or not archive.is_file():
            reason = next((line for line in run.stderr.splitlines() if "npm err" in line.lower()), "no archive came")
            raise ToolkitError(f"npm cannot fetch {what}: {reason.strip()}")
        return archive
    try:
        with urllib.request.urlopen(f"{NPM}/{package.package}/-/{archive.name}", timeout=60) as answer:
            archive.write_bytes(answer.read())
    except (http.client.HTTPException, OSError) as error:
        raise ToolkitError(f"cannot fetch {what} from {NPM}: {error}") from error
    return archive
