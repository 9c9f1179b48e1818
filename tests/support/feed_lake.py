"""A feed of a server's binlogs in this process, and the resulting lake."""

import json
import shutil
from pathlib import Path
from typing import Any

from deploy.servers import Server
from relay.feed.engine import FeedEngine
from relay.feed.feed_config import load_feed_config
from relay.feed.feed_run import open_connection, open_engine, open_lake
from relay.feed.lake.lake_table import Lake
from relay.feed.rows.feed_stop import FeedStop


def copied_binlogs(server: Server, directory: Path) -> Path:
    """Return all that the server has written, whole."""
    server.sql("FLUSH BINARY LOGS")
    directory.mkdir(parents=True, exist_ok=True)
    for one in server.binlogs():
        shutil.copy(one, directory)
    return directory


class SmallFeed:
    """One feed.toml, reopened for each run as a process would."""

    def __init__(self, directory: Path, archive: Path, schema: str, **more: Any) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        keys = {
            "archive": str(archive),
            "target": str(directory / "lake"),
            "tables": [f"{schema}.*"],
            "on_trouble": "stop-feed",
            **more,
        }
        storage = keys.pop("storage", {})
        self.schema = schema
        self.config = directory / "feed.toml"
        lines = [f"{name} = {json.dumps(value)}" for name, value in keys.items()]
        lines += (
            ["[feed.storage]", *(f"{name} = {json.dumps(value)}" for name, value in storage.items())] if storage else []
        )
        self.config.write_text("[feed]\n" + "\n".join(lines) + "\n")

    def open(self) -> FeedEngine:
        """Return the engine at the place that the lake says."""
        return open_engine(load_feed_config(self.config))

    def lake(self) -> Lake:
        """Return its lake, for reading."""
        section = load_feed_config(self.config)
        return open_lake(section, open_connection(section))

    def run(self) -> FeedStop | None:
        """Run up to the current end; return what stopped it."""
        engine = self.open()
        try:
            while engine.step():
                pass
        except FeedStop as stop:
            return stop
        finally:
            engine.close()
            engine.let_go()
        return None

    def rows(self, table: str, kind: str = "current") -> list[dict[str, Any]] | None:
        """Return a table's rows; None if it is not there."""
        found = self.lake().open(kind, self.schema, table)
        if found is None:
            return None
        with found.scan() as reader:
            rows = reader.read_all().to_pylist()
        return sorted(rows, key=lambda one: (one.get("sequence", 0), one.get("row", 0), str(one)))

    def property(self, table: str, name: str) -> str | None:
        """Return a property of a current table."""
        found = self.lake().open("current", self.schema, table)
        return None if found is None else found.properties.get(name)

    def version(self, table: str) -> int:
        """Return the newest version of a current table."""
        found = self.lake().open("current", self.schema, table)
        assert found is not None
        return found.version

    def commits(self, table: str) -> int:
        """Return how many commits a current table has."""
        found = self.lake().open("current", self.schema, table)
        assert found is not None
        return found.facts()["commits"]
