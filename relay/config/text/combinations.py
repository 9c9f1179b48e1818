"""The combinations that contradict each other in a configuration; on the raw text, so that other mistakes hide nothing."""

from collections.abc import Mapping
from typing import Any, get_args

from protocol.auth.authenticator import Plugin
from protocol.auth.credentials import Credentials
from protocol.auth.host_pattern import HostPattern
from relay.config.text.problems import Findings
from relay.config.text.replica_list import check_replicas
from relay.config.text.retention_text import check_retention
from relay.config.text.source_list import check_sources
from relay.config.text.tiers_text import check_tiers
from relay.config.text.toml_text import accounts_in
from relay.config.text.view_list import check_views


def check_combinations(data: Mapping[str, Any], findings: Findings) -> None:
    """Find accounts that shadow each other, plugins that cannot check what there is, values that exclude each other."""
    _check_accounts(data, findings)
    _check_publish(data, findings)
    _check_presentation(data, findings)
    check_sources(data, findings)
    check_views(data, findings)
    check_replicas(data, findings)
    check_retention(data, findings)
    check_tiers(data, findings)


def _check_accounts(data: Mapping[str, Any], findings: Findings) -> None:
    first: dict[tuple[str, str], str] = {}
    for key, account in accounts_in(data):
        user, host = account.get("user"), account.get("host", "%")
        if isinstance(user, str) and isinstance(host, str):
            identity = (user, _host_identity(host))
            if identity in first:
                what = f'"{user}" at "{host}" is also {first[identity]}'
                findings.problem(f"{key}.user", what, "Give each of them a host of its own, or keep one")
            first.setdefault(identity, key)
        _check_plugin(f"{key}.plugin", account, findings)


def _host_identity(host: str) -> str:
    try:
        return HostPattern.parse(host).identity
    except ValueError:
        return host


def _check_plugin(key: str, account: Mapping[str, Any], findings: Findings) -> None:
    plugin, stored = account.get("plugin"), account.get("password_hash")
    if not isinstance(plugin, str) or not isinstance(stored, str) or plugin not in get_args(Plugin):
        return
    try:
        able = Credentials.from_stored(stored).plugins
    except ValueError:
        return
    if plugin not in able:
        instead = f'Write plugin = "{able[0]}", or leave it out'
        findings.problem(key, f"{plugin} cannot check a hash of {able[0]}", instead)


def _check_publish(data: Mapping[str, Any], findings: Findings) -> None:
    archive = data.get("archive")
    if isinstance(archive, dict) and archive.get("publish") == "synced" and archive.get("sync") == "none":
        instead = 'Write sync = "transaction" or "interval", or publish = "written"'
        findings.problem("archive.publish", '"synced" with sync = "none" would publish nothing', instead)


def _check_presentation(data: Mapping[str, Any], findings: Findings) -> None:
    source, listen = data.get("source"), data.get("listen")
    if not isinstance(source, dict) or not isinstance(listen, dict):
        return
    if listen.get("present_as") == "relay" and source.get("kind") == "directory":
        what = 'is "relay", and a relay of a directory has no server_id of its own to show'
        findings.problem("listen.present_as", what, 'Write "source", or leave it out')
