"""Programs that people connect to a source, and to a relay: `python -m tests.support.client_tools install` gets them from the ordinary
package sources. Tests of one that is missing are skipped, with the reason."""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from deploy.servers.location import ServerUnavailable, locked, root_directory
from deploy.servers.packages import apt_install
from deploy.servers.process import run_tool

_MACHINES_AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
NODE_PACKAGES = ("zongji@0.5.1", "@vlasky/zongji@0.9.0", "mysql2@3.22.5")


def node_directory() -> Path:
    """Return the directory of the packages for node."""
    return root_directory() / "node-readers"


@dataclass(frozen=True)
class ClientTool:
    """A program, or a few. `is_there` returns whether it can be used; `install` raises ServerUnavailable."""

    name: str
    is_there: Callable[[], bool]
    install: Callable[[], None]


def _install_node_packages() -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        apt_install(["nodejs", "npm"], "node, for readers of binlogs written for it")
    with locked("node-readers"):
        directory = node_directory()
        directory.mkdir(parents=True, exist_ok=True)
        options = ["--prefix", str(directory), "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error"]
        command = ["npm", "install", *options, *NODE_PACKAGES]
        run_tool(command, environment=_trusted_by_node(), what="npm install of readers of binlogs")


def _trusted_by_node() -> dict[str, str]:
    """Return variables that make node, which trusts its own authorities, also trust those of the machine, as pip and apt do."""
    if "NODE_EXTRA_CA_CERTS" in os.environ or not _MACHINES_AUTHORITIES.is_file():
        return {}
    return {"NODE_EXTRA_CA_CERTS": str(_MACHINES_AUTHORITIES)}


def _has_node_packages() -> bool:
    modules = node_directory() / "node_modules"
    names = [name.rpartition("@")[0] for name in NODE_PACKAGES]
    return shutil.which("node") is not None and all((modules / name).is_dir() for name in names)


TOOLS = (
    ClientTool("zongji", _has_node_packages, _install_node_packages),
    ClientTool(
        "mysqld_exporter",
        lambda: shutil.which("prometheus-mysqld-exporter") is not None,
        lambda: apt_install(["prometheus-mysqld-exporter"], "mysqld_exporter"),
    ),
    ClientTool(
        "chromium",
        lambda: shutil.which("chromium") is not None and shutil.which("chromedriver") is not None,
        lambda: apt_install(["chromium", "chromium-driver"], "Chromium, for the relay's page"),
    ),
    ClientTool(
        "percona-toolkit",
        lambda: shutil.which("pt-slave-find") is not None,
        lambda: apt_install(["percona-toolkit"], "Percona Toolkit"),
    ),
)


def need_tool(name: str) -> None:
    """Skip the test if that tool is missing."""
    tool = next(tool for tool in TOOLS if tool.name == name)
    if not tool.is_there():
        pytest.skip(f"{name} is not installed: python -m tests.support.client_tools install")


def install() -> int:
    """Install what is missing; return 0 if all can be used afterwards."""
    failed = 0
    for tool in TOOLS:
        try:
            if not tool.is_there():
                print(f"{tool.name}: installing ...", flush=True)
                tool.install()
            print(f"{tool.name}: ready", flush=True)
        except ServerUnavailable as error:
            failed += 1
            print(f"{tool.name}: not available: {error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(install())
