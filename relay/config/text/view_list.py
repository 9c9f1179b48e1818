"""`[[view]]`, and the accounts that are served one: settings that contradict each other; on the raw text."""

from collections.abc import Mapping
from typing import Any

from relay.config.text.problems import Findings
from relay.config.text.source_list import OTHERS
from relay.config.text.toml_text import accounts_in, views_in
from relay.view.rules.settings import TARGETS


def check_views(data: Mapping[str, Any], findings: Findings) -> None:
    """Find names that occur twice or refer to nothing, uuids that mean nothing or are uncertain, what no replica would read."""
    first: dict[str, str] = {}
    for key, view in views_in(data):
        name = view.get("name")
        if isinstance(name, str):
            # Directories whose names differ only in case are one directory on some disks.
            if name.lower() in first:
                what = f'"{name}" is also {first[name.lower()]}, and would have the same directory'
                findings.problem(f"{key}.name", what, "Give each view a name of its own")
            first.setdefault(name.lower(), key)
        _check_uuid(key, view, data, findings)
        _check_dependencies(key, view, findings)
    names = [view["name"] for _key, view in views_in(data) if isinstance(view.get("name"), str)]
    for key, account in accounts_in(data):
        wanted = account.get("view")
        if isinstance(wanted, str) and wanted and wanted not in names:
            known = f"Write one of {', '.join(names)}" if names else f'Add a [[view]] with name = "{wanted}"'
            findings.problem(f"{key}.view", f'there is no [[view]] "{wanted}"', f"{known}, or leave it out")


def _check_dependencies(key: str, view: Mapping[str, Any], findings: Findings) -> None:
    target = view.get("for", TARGETS[-1])
    if view.get("dependencies") == "writeset" and target in ("mysql-5.5", "mysql-5.6"):
        what = f"replicas of {target} do not read which transactions wait for which"
        findings.problem(f"{key}.dependencies", what, 'Write "serial", or leave it out')


def _check_uuid(key: str, view: Mapping[str, Any], data: Mapping[str, Any], findings: Findings) -> None:
    assigns, uuid = view.get("gtids", "assign") == "assign", view.get("uuid")
    if uuid is not None and not assigns:
        instead = 'Leave it out, or write gtids = "assign"'
        findings.problem(f"{key}.uuid", f'with gtids = "{view.get("gtids")}" no GTIDs are assigned', instead)
    if uuid is not None or not assigns:
        return
    source = data.get("source")
    if OTHERS in data:
        what = "is made of the source that is archived first, and there are several [[source]]"
        instead = "Write a uuid if another relay, or this one with an empty archive, is to hand out the same GTIDs"
        findings.warning(f"{key}.uuid", what, instead)
    elif isinstance(source, dict) and source.get("kind") == "directory":
        what = "is made of a server_id alone, as binlogs in a directory do not say more"
        findings.warning(f"{key}.uuid", what, "Write one: another source may have the same server_id")
