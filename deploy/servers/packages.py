"""The package tools of a Debian machine: apt, its mirrors and its proxies, read at run time."""

import functools
import os
import shutil
import sys
from pathlib import Path

from .location import ServerUnavailable, locked
from .process import run_tool

_APT = {"DEBIAN_FRONTEND": "noninteractive"}


# The first process that fetches the package lists sets this, for all that this run starts: see deploy/debian_packages.sh.
_FETCHED = "BINLOG_RELAY_PACKAGE_LISTS"


def apt_install(names: list[str], what: str) -> None:
    """Install Debian packages as root, from today's package lists if they are available, starting no services.

    Raises: ServerUnavailable naming `what` and the packages.
    """
    wanted = " ".join(names)
    if shutil.which("apt-get") is None:
        raise ServerUnavailable(f"{what} is missing, and there is no apt-get to install {wanted} with")
    if os.geteuid() != 0:
        raise ServerUnavailable(f"{what} is missing: run `apt-get install {wanted}` as root")
    with locked("apt"), _NoServices():
        _refresh_lists()
        run_tool(
            ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", *names],
            environment=_APT,
            what=f"apt-get install {wanted} (for {what})",
        )


def _refresh_lists() -> None:
    """Fetch the package lists, once per run. If that fails, the packages in the old ones may still exist."""
    if os.environ.get(_FETCHED):
        return
    try:
        run_tool(["apt-get", "update"], environment=_APT)
    except ServerUnavailable as error:
        print(f"packages are taken from the lists that are here: {error}", file=sys.stderr, flush=True)
    os.environ[_FETCHED] = "fetched"


class _NoServices:
    """A context in which packages start no services: invoke-rc.d asks /usr/sbin/policy-rc.d.

    A machine that has such a policy of its own keeps it.
    """

    _POLICY = Path("/usr/sbin/policy-rc.d")

    def __enter__(self) -> None:
        self._made = not self._POLICY.exists()
        if self._made:
            self._POLICY.write_text("#!/bin/sh\nexit 101\n")
            self._POLICY.chmod(0o755)

    def __exit__(self, *_: object) -> None:
        if self._made:
            self._POLICY.unlink(missing_ok=True)


def debian_mirror() -> str | None:
    """Return the Debian archive that this machine's own apt uses, or None to let a tool use its default."""
    if shutil.which("apt-get") is None:
        return None
    try:
        targets = run_tool(
            [
                "apt-get",
                "indextargets",
                "--format",
                "$(REPO_URI) $(ORIGIN)/$(LABEL) $(COMPONENT)",
                "Created-By: Packages",
            ]
        )
    except ServerUnavailable:
        return None
    for line in targets.splitlines():
        uri, _, rest = line.partition(" ")
        if rest == "Debian/Debian main" and uri.startswith(("http://", "https://")):
            return uri
    return None


@functools.cache
def proxy_environment() -> dict[str, str]:
    """Return apt's own proxies as the variables that other tools read; variables that are set already stay."""
    found: dict[str, str] = {}
    if shutil.which("apt-config") is None:
        return found
    for scheme in ("http", "https"):
        if os.environ.get(f"{scheme}_proxy"):
            continue
        text = run_tool(["apt-config", "shell", "PROXY", f"Acquire::{scheme}::Proxy"]).strip()
        value = text.partition("=")[2].strip("'")
        if value and value != "DIRECT":
            found[f"{scheme}_proxy"] = value
    return found


def remove_tree(directory: Path) -> None:
    """Remove a system tree that is not in use. Refuses one with something mounted inside."""
    if not directory.exists():
        return
    mounts = Path("/proc/self/mounts")
    if mounts.exists():
        inside = f"{directory.absolute()}/"
        for line in mounts.read_text().splitlines():
            if line.split(" ")[1].startswith(inside):
                raise ServerUnavailable(f"{directory} has something mounted at {line.split(' ')[1]}: unmount it first")
    shutil.rmtree(directory)
