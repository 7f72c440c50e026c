"""Makes a Debian system for another CPU in a folder. Its programs run under qemu-user, without root privileges.

The folder build/emulated/qemu has the emulators if no recent one is installed. The folder
build/emulated/ARCHITECTURE/root has Debian's packages, which are only unpacked, never installed. The folder
build/emulated/ARCHITECTURE/TARGET/user has packages that an emulated pip has installed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from toolchains.build import locked
from toolchains.fetch.lock import find
from toolchains.needs import needs
from toolchains.probes import DEBIAN, KEYRING, debian_architecture
from toolchains.targets import BUILD, Target, ToolkitError

SUITE = "bookworm"
PACKAGES = ("python3", "python3-pip", "python3-numpy", "libstdc++6")

# The oldest version of QEMU that runs the newest releases of LiteRT. The programs in Debian's package are linked
# statically, so the package of a newer Debian runs on this machine too.
OLDEST_QEMU = (11, 1)
QEMU_SUITE = "trixie-backports"
QEMU = find("qemu-user")
QEMU_ARCHITECTURES = ("amd64", "arm64")

# Settings that keep apt from using this machine's system: another architecture, no installed packages, and all files in
# one folder.
APT_CONFIGURATION = """\
APT::Architecture "{architecture}";
APT::Architectures {{"{architecture}";}};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir "{folder}";
Dir::Cache "{folder}/cache";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Etc "{folder}/etc";
Dir::Etc::parts "{folder}/etc";
Dir::Etc::preferencesparts "{folder}/etc";
Dir::Etc::trustedparts "{folder}/etc";
Dir::Etc::sourceparts "{folder}/etc";
Dir::Etc::sourcelist "{folder}/etc/sources.list";
"""


def emulator(target: Target) -> str:
    """The path of the installed emulator for `target`, of any version.

    Raises:
        ToolkitError: the emulator is missing, or QEMU has none for the target.
    """
    if not target.emulator:
        raise ToolkitError(f"{target.name} is not emulated: it has no emulator in targets.toml")
    program = shutil.which(target.emulator) or shutil.which(f"{target.emulator}-static")
    if not program:
        raise ToolkitError(needs()[target.emulator].missing())
    return program


def recent_emulator(target: Target) -> str:
    """The path of an emulator for `target` that runs current runtimes: the installed one, or one fetched from Debian.

    Raises:
        ToolkitError: QEMU has no emulator for the target, or it cannot be fetched.
    """
    try:
        installed = emulator(target)
        if _qemu_version(installed) >= OLDEST_QEMU:
            return installed
    except ToolkitError:
        if not target.emulator:
            raise
    _require_debian()
    folder = BUILD / "emulated" / "qemu"
    program = folder / QEMU.version.replace(":", "_") / target.emulator
    with locked(folder):
        if not program.is_file():
            _extract_qemu(_fetch_qemu(folder / "apt"), program)
    return str(program)


def _qemu_version(program: str) -> tuple[int, ...]:
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def _fetch_qemu(folder: Path) -> Path:
    """Downloads Debian's package of the emulators for this machine; returns the archive."""
    architecture = debian_architecture()
    if architecture not in QEMU_ARCHITECTURES:
        raise ToolkitError(f"no emulator is published for this machine ({architecture}): install QEMU 11.1 or newer")
    apt(folder, architecture, QEMU_SUITE, ["download", f"{QEMU.package}={QEMU.version}"])
    archive = next(folder.glob("qemu-user_*.deb"))
    QEMU.verify(archive)
    return archive


def _extract_qemu(archive: Path, program: Path) -> None:
    """Extracts one program of the package, because all its programs together take half a gigabyte."""
    program.parent.mkdir(parents=True, exist_ok=True)
    whole = program.with_name(f".{program.name}.new")
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE) as unpacked:
        with tarfile.open(fileobj=unpacked.stdout, mode="r|") as tar:
            member = next(member for member in tar if member.name == f"./usr/bin/{program.name}")
            content = tar.extractfile(member)
            assert content is not None
            with whole.open("wb") as file:
                shutil.copyfileobj(content, file)
        unpacked.kill()
    whole.chmod(0o755)
    whole.replace(program)


def _require_debian() -> None:
    """Raises ToolkitError if Debian's packages cannot be fetched and unpacked on this machine."""
    packages = {"apt-get": "apt", "dpkg-deb": "dpkg"}
    missing = [f"{program} (Debian package {packages[program]})" for program in packages if not shutil.which(program)]
    missing += [] if KEYRING.exists() else [f"{KEYRING} (Debian package debian-archive-keyring)"]
    if missing:
        raise ToolkitError(f"Debian's packages are fetched with what is missing here: {', '.join(missing)}")


def foreign_root(target: Target) -> Path:
    """Returns the folder with a Debian system for the target's architecture. If it is missing, the function makes it
    first.

    Raises:
        ToolkitError: a program of Debian is missing, or its packages cannot be fetched.
    """
    _require_debian()
    folder = BUILD / "emulated" / target.debian
    stamp = folder / "stamp"
    wanted = f"{DEBIAN} {SUITE} {' '.join(PACKAGES)}"
    with locked(folder):
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            stamp.unlink(missing_ok=True)
            _unpack(folder, _fetch_packages(folder / "apt", target.debian))
            stamp.write_text(wanted, encoding="utf-8")
    return folder / "root"


def _fetch_packages(folder: Path, architecture: str) -> list[Path]:
    """Downloads the packages of the constant PACKAGES and all their dependencies; returns the archives."""
    apt(folder, architecture, SUITE, ["install", "--download-only", "--yes", *PACKAGES])
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def apt(folder: Path, architecture: str, suite: str, command: list[str]) -> None:
    """Runs apt-get in a folder that is emptied first, for a Debian system in which nothing is installed.

    Raises:
        ToolkitError: Debian's servers cannot be reached, or apt-get refuses the command.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("cache/archives/partial", "state/lists/partial", "etc"):
        (folder / part).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "etc" / "sources.list").write_text(f"deb [signed-by={KEYRING}] {DEBIAN} {suite} main\n")
    configuration = folder / "apt.conf"
    configuration.write_text(APT_CONFIGURATION.format(architecture=architecture, folder=folder))
    for step in (["update"], command):
        run = subprocess.run(
            ["apt-get", "--quiet", *step],
            cwd=folder,
            env=os.environ | {"APT_CONFIG": str(configuration), "LC_ALL": "C"},
            capture_output=True,
            text=True,
        )
        if run.returncode:
            reason = next((line for line in run.stderr.splitlines() if line.startswith("E:")), "apt-get failed")
            raise ToolkitError(f"cannot fetch Debian's {architecture} packages: {reason}")


def _unpack(folder: Path, archives: Sequence[Path]) -> None:
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for archive in archives:
        subprocess.run(["dpkg-deb", "--extract", str(archive), str(root)], check=True, capture_output=True)
    # These links stand for Debian's alternatives system, which would choose the linear algebra library for NumPy.
    for name in ("blas", "lapack"):
        for library in root.glob(f"usr/lib/*/{name}/lib{name}.so.3"):
            (library.parents[1] / library.name).symlink_to(Path(name, library.name))


class Emulation:
    """Runs programs and Python for a target.

    Args:
        target: the target, which names the emulator, the Debian architecture and the CPU.

    Raises:
        ToolkitError: the errors of `recent_emulator` and `foreign_root`.
    """

    def __init__(self, target: Target) -> None:
        self._emulator = recent_emulator(target)
        self._cpu = target.emulator_cpu
        self.root = foreign_root(target)
        self.user = self.root.parent / target.name / "user"

    def run(
        self, command: Sequence[str | Path], *, cpu: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program for the target with extra environment variables. The result has stdout and stderr together in
        `stdout`.

        The emulated CPU is `cpu`, or the target's CPU if `cpu` is "".
        """
        # Environment variables that are meant for this machine's Python and litebnn must not affect the target's
        # Python.
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LITEBNN"))}
        return subprocess.run(
            [self._emulator, "-cpu", cpu or self._cpu, "-L", str(self.root), *map(str, command)],
            env=ours | {"PYTHONUSERBASE": str(self.user)} | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def python(self, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs the target's Python."""
        return self.run([self.root / "usr" / "bin" / "python3", *arguments], **variables)

    def install(self, *requirements: str | Path) -> None:
        """Installs `requirements` and their dependencies into the folder `user`, with the target's own pip. Packages
        that were there before are removed.

        Raises:
            ToolkitError: pip failed.
        """
        wanted = hashlib.sha256()
        for requirement in requirements:
            wanted.update(requirement.read_bytes() if isinstance(requirement, Path) else requirement.encode())
        stamp = self.user / "stamp"
        with locked(self.user.parent):
            if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted.hexdigest():
                return
            shutil.rmtree(self.user, ignore_errors=True)
            # The option --no-compile saves time: an emulated Python takes long to compile all modules, and the tests
            # import only a few.
            options = ("--user", "--break-system-packages", "--only-binary=:all:", "--no-compile", "--quiet")
            run = self.python("-m", "pip", "install", *options, *requirements)
            if run.returncode:
                raise ToolkitError(f"the emulated pip failed: {run.stdout.strip().splitlines()[-1]}")
            stamp.write_text(wanted.hexdigest(), encoding="utf-8")
