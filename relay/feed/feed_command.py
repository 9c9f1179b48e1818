"""`binlog-relay feed`: what is typed becomes a feed, its outcome lines for people and an exit code."""

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relay.commands.outcome import FINDINGS, SOURCE_UNREACHABLE, WRONG_USE, CommandFailed

if TYPE_CHECKING:
    from relay.feed.feed_config import FeedSection


def check_feed_installed() -> None:
    """Raises: CommandFailed."""
    try:
        import deltalake  # noqa: F401
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise CommandFailed(f"{error.name} is not installed: pip install 'binlog-relay[feed]'", WRONG_USE) from None


def loaded_feed(path: Path) -> "FeedSection":
    """The settings of a feed.toml. Raises: CommandFailed."""
    check_feed_installed()
    from relay.config.text.problems import ConfigError
    from relay.feed.feed_config import load_feed_config

    try:
        return load_feed_config(path)
    except ConfigError as error:
        raise CommandFailed(str(error), WRONG_USE) from None


def follow(path: Path, *, once: bool) -> None:
    """Feeds. Raises: CommandFailed."""
    section = loaded_feed(path)
    from relay.audit.plan.series_files import NothingToRead
    from relay.feed.feed_run import FeedFailed, run_feed
    from relay.feed.rows.feed_stop import FeedStop

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        run_feed(section, say, once=once, ended=ended)
    except FeedStop as stop:
        raise CommandFailed(str(stop), FINDINGS) from None
    except NothingToRead as error:
        raise CommandFailed(str(error), WRONG_USE) from None
    except FeedFailed as error:
        raise CommandFailed(str(error), SOURCE_UNREACHABLE) from None


def say(text: str) -> None:
    """A line for whoever watches."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def print_json(facts: Any) -> None:
    """One object a line."""
    import json

    sys.stdout.write(json.dumps(facts, ensure_ascii=False, default=str) + "\n")
