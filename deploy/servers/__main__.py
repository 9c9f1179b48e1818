"""The commands `python -m deploy.servers install [NAME ...]` and `python -m deploy.servers status`."""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from . import SERVERS, available
from .location import ServerUnavailable, root_directory
from .server_process import ServerError


def install(names: list[str]) -> int:
    """Install the named servers, or all; return 0 if all of them can be used afterwards."""
    print(f"servers are kept under {root_directory()}", flush=True)
    # Installing mostly waits for the package source: two of them at a time.
    with ThreadPoolExecutor(2) as pool:
        installed = list(pool.map(_install_one, names or list(SERVERS)))
    return 0 if all(installed) else 1


def _install_one(name: str) -> bool:
    """Return whether the server can be used afterwards; say so, or why not."""
    kind = SERVERS[name]
    began = time.monotonic()
    try:
        if kind.missing() is not None:
            print(f"{name}: installing ...\n", end="", flush=True)
        kind.install()
        kind.template()
    except (ServerUnavailable, ServerError) as error:
        print(f"{name}: not available: {error}\n", end="", file=sys.stderr, flush=True)
        return False
    print(f"{name}: {kind.read_version()} is ready ({time.monotonic() - began:.1f} s)\n", end="", flush=True)
    return True


def status() -> int:
    """Print what can be used here; return 0 if anything can."""
    answers = available()
    for name, reason in answers.items():
        print(f"{name}: {SERVERS[name].read_version() if reason is None else f'not available: {reason}'}")
    return 0 if None in answers.values() else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.servers", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("install", help="install servers, all of them unless named")
    verb.add_argument("names", nargs="*", choices=[*SERVERS, []], metavar="NAME", help=", ".join(SERVERS))
    verbs.add_parser("status", help="which servers can be used, and what the others lack")
    arguments = parser.parse_args()
    return install(arguments.names) if arguments.verb == "install" else status()


if __name__ == "__main__":
    sys.exit(main())
