"""Several `[[source]]` sections: the first is the source, the others may replace it. What they leave out is as in the first."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from relay.config.text.problems import Findings

OTHERS: Final = "source[1:]"
"""The place of the others in the data that is checked: a key that no file contains."""
_SECRETS: Final = ("password", "password_file", "password_env", "password_credential")


def split_sources(data: dict[str, Any]) -> None:
    """Make the first [[source]] the source, and put the others next to it, each with what it left out."""
    sources = data.get("source")
    if not isinstance(sources, list) or not sources or not all(isinstance(one, dict) for one in sources):
        return
    data["source"], *others = sources
    if others:
        data[OTHERS] = [_completed(data["source"], other) for other in others]


def _completed(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    taken = dict(first)
    if any(form in other for form in _SECRETS):
        for form in _SECRETS:
            taken.pop(form, None)
    return {**taken, **other}


def sources_in(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any] | None]]:
    """Yield the sources that are sections: the key that a message names each by, it, and the one it takes values from."""
    first = data.get("source")
    if not isinstance(first, dict):
        return
    yield "source", first, None
    others = data.get(OTHERS)
    for number, other in enumerate(others if isinstance(others, list) else (), start=2):
        if isinstance(other, dict):
            yield f"source#{number}", other, first


def own_values(section: Mapping[str, Any], first: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of a source that differ from the first one."""
    if first is None:
        return dict(section)
    return {key: value for key, value in section.items() if key not in first or first[key] != value}


def is_of_the_first(loc: tuple[int | str, ...], data: Mapping[str, Any]) -> bool:
    """Return whether a mistake in one of the others was taken from the first source, where it is reported already."""
    if len(loc) < 3 or loc[0] != OTHERS or not isinstance(loc[1], int):
        return False
    first, other = data.get("source"), data[OTHERS][loc[1]]
    return isinstance(first, dict) and isinstance(other, dict) and first.get(str(loc[2])) == other.get(str(loc[2]))


def check_sources(data: Mapping[str, Any], findings: Findings) -> None:
    """Find sources that cannot replace each other, and a failover without another source."""
    seen: dict[tuple[object, object], str] = {}
    for key, section, first in sources_in(data):
        if first is not None:
            for one in ("kind", "name"):
                if section.get(one, None) != first.get(one, None):
                    what = "is another one than the first source's, and all of them share one archive"
                    findings.problem(f"{key}.{one}", what, "Leave it out")
            if section.get("kind") == "directory":
                findings.problem(key, "a directory has no other sources", "Keep one [source]")
        address = (section.get("host"), section.get("port", 3306))
        if address in seen and section.get("kind") == "server":
            findings.problem(
                f"{key}.host", f"and its port are {seen[address]}'s", "Name another server, or take it out"
            )
        seen.setdefault(address, key)
    failover = data.get("failover")
    if isinstance(failover, dict) and failover.get("mode") == "automatic" and OTHERS not in data:
        what = 'is "automatic", and there is one source only'
        findings.warning("failover.mode", what, "Add a [[source]] that may take its place")
