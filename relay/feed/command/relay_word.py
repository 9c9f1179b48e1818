"""The relay's own word about its source: whether it follows it, and how old what it lacks is. The feed itself sees the archive only."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relay.archive.storage.files import LOCK_NAME
from relay.feed.feed_config import ELSEWHERE, FeedSection

_START_IT: Final = "Start it: `binlog-relay run`; `binlog-relay status` says how it is."
_ASK_IT: Final = "`binlog-relay status` and `binlog-relay doctor` say why, and what to do."
_NAME_IT: Final = "Name its relay.toml in `relay` of feed.toml, so that it can be asked."


@dataclass(frozen=True, slots=True)
class RelayWord:
    """What is known of the archive's source. `follows` is False if the relay is known not to follow it, None if nobody can say.

    `behind_s` is the age of the events that the archive lacks; None if it is unknown.
    """

    follows: bool | None
    behind_s: float | None
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.advice}".rstrip()


def relay_word(section: FeedSection) -> RelayWord:
    """Return what the relay of a feed's archive says. It never raises for a relay that does not answer. Raises: ConfigError."""
    if section.relay == ELSEWHERE:
        return RelayWord(None, None, "The relay runs elsewhere, so its lag is not known here.")
    if section.relay is not None:
        return _asked(section.relay, section.archive)
    archive = Path(section.archive)
    if "://" in section.archive or not (archive / LOCK_NAME).exists():
        return RelayWord(None, None, "This archive is not a relay's on this machine, so its lag is not known here.")
    from relay.doctor.machine_checks import relay_pid

    if relay_pid(archive) is None:
        return RelayWord(
            False,
            None,
            "No relay on this machine has the archive open, so the source may be far ahead of it.",
            f'{_START_IT} If it runs elsewhere: `relay = "{ELSEWHERE}"` in feed.toml.',
        )
    return RelayWord(None, None, "The relay runs, and its lag is not known here.", _NAME_IT)


def _asked(relay_toml: Path, archive: str) -> RelayWord:
    from relay.config.loading import load_config
    from relay.status.relay_status import relay_status

    config = load_config(relay_toml)
    if config.archive_directory.resolve() not in (Path(archive).resolve(), *Path(archive).resolve().parents):
        text = f"{relay_toml}, which `relay` names, has the archive {config.archive_directory} and not {archive}."
        return RelayWord(False, None, text, "Correct `relay` or `archive` in feed.toml.")
    return word_of(asyncio.run(relay_status(config)))


def word_of(found: dict[str, Any]) -> RelayWord:
    """Return the word that the facts of `relay_status` are."""
    relay, source = found["relay"], found["source"]
    if not relay["running"]:
        return RelayWord(
            False, None, "The relay does not run, so the source may be far ahead of the archive.", _START_IT
        )
    reason = source["error"] or source["state"] or "it was stopped"
    if source["attached"] is False:
        return RelayWord(False, None, f"The relay does not follow its source: {reason}.", _ASK_IT)
    if source["publishes"] is False:
        return RelayWord(
            False, None, f"The relay archives nothing more: {source['error'] or 'it was stopped'}.", _ASK_IT
        )
    if source["attached"] is None:
        return RelayWord(None, None, f"The relay runs, and could not be asked: {relay['not_asked']}.", _ASK_IT)
    behind = source["seconds_behind"]
    if behind is None:
        return RelayWord(None, None, "The relay has just connected to its source, so its lag is not known yet.")
    return RelayWord(True, float(behind), f"The relay follows its source and is {behind:g} s behind it.")
