"""HTTP requests to a relay."""

import http.client
import json
from typing import Any, Final

TOKEN: Final = "a-token-of-the-tests"


def http_section(port: int, **more: Any) -> dict[str, dict[str, Any]]:
    """Return [http] for RelayProcess."""
    return {"http": {"enabled": True, "port": port, "token": TOKEN, **more}}


def get(port: int, path: str, token: str | None = TOKEN, **headers: str) -> tuple[int, bytes]:
    """Return status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        given = {"Authorization": f"Bearer {token}", **headers} if token is not None else headers
        connection.request("GET", path, headers=given)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def get_json(port: int, path: str) -> Any:
    """Return an answer of the API."""
    status, body = get(port, f"/api/v1/{path}")
    assert status == 200, body
    return json.loads(body)


def metric(port: int, name: str, **labels: str) -> float | None:
    """Return a metric's value; of several the first that has these labels; None if there is none."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    for line in get(port, "/metrics")[1].decode().splitlines():
        if line.partition(" ")[0].partition("{")[0] == f"binlog_relay_{name}" and all(one in line for one in wanted):
            return float(line.rpartition(" ")[2])
    return None
