"""Whether the relay in this container lives, by BINLOG_RELAY_HEALTH, the address of its /healthz. Exit code 0: it does.

Nothing but Python is needed, which is there anyway.
"""

import os
import sys
import urllib.request

address = os.environ.get("BINLOG_RELAY_HEALTH", "http://127.0.0.1:9307/healthz")
try:
    # A proxy of the environment is for others.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=4) as answer:
        answer.read(64)
except (OSError, ValueError) as error:
    # urllib.error.HTTPError is an OSError, too: an answer other than 200.
    sys.exit(f"{address}: {error}. Is [http] enabled in relay.toml, and at this port?")
