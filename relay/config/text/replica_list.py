"""`[[replica]]`: each replica is named once; on the raw text, so that other mistakes hide nothing."""

from collections.abc import Mapping
from typing import Any

from relay.config.text.problems import Findings
from relay.config.text.toml_text import replicas_in


def check_replicas(data: Mapping[str, Any], findings: Findings) -> None:
    """Find replicas that are named twice."""
    first: dict[tuple[str, object], str] = {}
    for key, section in replicas_in(data):
        host = section.get("host")
        if isinstance(host, str):
            address = (host.lower(), section.get("port", 3306))
            if address in first:
                what = f"and its port are {first[address]}'s"
                findings.problem(f"{key}.host", what, "Name another replica, or take it out")
            first.setdefault(address, key)
