"""The health check of the relay in this container. Exit code 0 means that it is alive.

It is asked over the Unix socket beside its archive, which no network client can keep busy. BINLOG_RELAY_HEALTH is another path of that
socket, with * for any part, or the address of a /healthz (http://...). Only Python is needed, which the container contains anyway.
"""

import glob
import os
import socket
import sys
import urllib.request

_LONGEST_S = 4

asked = os.environ.get("BINLOG_RELAY_HEALTH", "/var/lib/binlog-relay/*.health.sock")


def answered_over_socket(path: str) -> None:
    # An address has 108 bytes at most, paths have more.
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(_LONGEST_S)
        asking.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
        asking.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = asking.recv(64)
    if not answer.startswith(b"HTTP/1.0 200 "):
        raise OSError(f"it answers {answer[:32]!r}")


try:
    if asked.startswith("http"):
        # A proxy of the environment does not apply to it.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(asked, timeout=_LONGEST_S) as answer:
            answer.read(64)
    else:
        paths = glob.glob(asked)
        if not paths:
            raise OSError("there is no such socket")
        for path in paths:
            answered_over_socket(path)
except (OSError, ValueError) as error:
    # urllib.error.HTTPError is an OSError, too: an answer other than 200.
    sys.exit(
        f"{asked}: {error}. Does the relay run, and is archive.dir of relay.toml /var/lib/binlog-relay? See BINLOG_RELAY_HEALTH."
    )
