"""The changes of relay.toml that a running relay does not take over."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from relay.config.sections import Config

TAKEN_OVER: Final = ("tls_cert", "tls_key", "tls_client_ca", "max_login_failures", "login_block_s")
"""The keys of [listen] that SIGHUP takes over; [[account]], [[replica]] and the account at each source besides."""
_OF_HTTP: Final = ("hosts", "tls_cert", "tls_key", "token", "token_file", "token_env", "token_credential")
_OF_SOURCES: Final = ("user", "password", "password_file", "password_env", "password_credential")


def waiting_for_restart(running: Config, wanted: Config) -> list[str]:
    """Return the keys, as in `listen.port`, whose new values take effect at the next start; a list of sources that is longer, shorter
    or in another order is `source`, views of which any is another are `view`."""
    before, after = _compared(running), _compared(wanted)
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    if [(one.host, one.port) for one in running.sources] != [(one.host, one.port) for one in wanted.sources]:
        changed = ["source", *(key for key in changed if not key.startswith("source"))]
    if running.views != wanted.views:
        changed.append("view")
    return changed


def _compared(config: Config) -> dict[str, object]:
    """Return each value by its key, except for those that are taken over."""
    found: dict[str, object] = {}
    sections: list[tuple[str, Mapping[str, Any], tuple[str, ...]]] = [
        ("archive", dict(config.archive), ()),
        ("listen", dict(config.listen), TAKEN_OVER),
        ("http", dict(config.http), _OF_HTTP),
        ("memory", dict(config.memory), ()),
        ("failover", dict(config.failover), ()),
    ]
    for number, source in enumerate((config.source, *config.others), start=1):
        sections.append(("source" if number == 1 else f"source#{number}", dict(source), _OF_SOURCES))
    for name, values, left_out in sections:
        found.update(_named(name, values, left_out))
    return found


def _named(section: str, values: Mapping[str, Any], left_out: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if key not in left_out:
            yield f"{section}.{key}", value
