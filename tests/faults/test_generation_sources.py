"""What a source may do to a relay whose archive has several generations: nothing but feed the newest."""

import asyncio
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.config import ServerSource
from relay.upstream.attach.attachment import Attached
from relay.upstream.server_source import ServerUpstream
from relay.upstream.source.source_gtids import SourceGtids
from relay.upstream.source.source_status import SourceLink
from tests.support.fake_source import FakeSource
from tests.support.generation_filling import (
    A,
    B,
    append_files,
    change_source,
    identity,
    mariadb_series,
    mysql_series,
)
from tests.support.relay_inside import relay_inside


async def test_a_mariadb_source_from_a_backup_is_attached_to_again_although_it_forgot_the_oldest_servers(
    tmp_path: Path,
) -> None:
    """Its binlogs begin behind the backup: of server 9, which wrote before server 1 did, they say nothing."""
    archive = await Archive.open(tmp_path / "archive" / "source")
    archive.current.set_identity(identity(None, 1, "mariadb"))
    await append_files(archive, mariadb_series(1, "0-9-1,0-9-2,0-1-3"))
    (held,) = mariadb_series(5, "0-1-3,0-2-4", start="0-1-2")
    await change_source(archive, identity(None, 2, "mariadb"), [held])
    await archive.close()
    (longer,) = mariadb_series(5, "0-1-3,0-2-4,0-2-5", start="0-1-2")
    name, data = longer
    variables = {"gtid_binlog_state": "0-1-3,0-2-5", "gtid_domain_id": "0", "gtid_strict_mode": "0"}
    with FakeSource({name: bytes(data)}, "mariadb", "10.11.6-MariaDB-log", 2, variables=variables) as source:
        async with relay_inside(tmp_path, source) as relay:
            await relay.until(
                lambda: relay.logged("source_given_up") or relay.logged("source_attached"), "attached or refused"
            )
            assert relay.logged("source_given_up") == []
            path = relay.archive / "g0002" / name
            await relay.until(lambda: path.stat().st_size == len(data), "all of it has come")


class NoConnection:
    """To a source that has nothing to say."""

    def close(self) -> None:
        """Nothing to end."""


async def test_a_change_that_is_stopped_before_its_first_file_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STOP REPLICA cancels more than once; what was prepared is taken back all the same."""
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3"))
    settings = ServerSource(host="127.0.0.1", port=1, user="u", password=SecretStr("p"), server_id=4242)
    upstream = ServerUpstream(archive, settings, B, SourceLink())

    async def attach(*_arguments: object, **_how: object) -> Attached:
        return Attached(
            connection=NoConnection(),  # type: ignore[arg-type]
            identity=identity(B, 2),
            gtids=SourceGtids(),
            place=None,
            file="mysql-bin.000007",
            binlogs_listed=True,
            semi_sync=False,
            another=True,
            begins=True,
        )

    async def for_ever(*_arguments: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(upstream._attacher, "attach", attach)
    monkeypatch.setattr(upstream, "_stream", for_ever)
    monkeypatch.setattr(upstream, "_schema_written", for_ever)
    following = asyncio.create_task(upstream._follow())

    async def until_receiving(number: int) -> None:
        deadline = time.monotonic() + 10
        while archive.receiving.number != number:
            assert time.monotonic() < deadline, archive.receiving.number
            await asyncio.sleep(0.01)

    await until_receiving(2)
    await asyncio.sleep(0.05)
    for timeout_s in (0.05, 10):
        following.cancel()
        await asyncio.wait({following}, timeout=timeout_s)
    assert following.cancelled()
    await until_receiving(1)
    await archive.prepare(identity(B, 2), "source-b:3306", "mysql-bin.000007")
    await archive.close()


async def test_a_change_that_is_stopped_while_its_directory_is_opened_leaves_nothing_open_and_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = await Archive.open(tmp_path)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3"))
    open_archive = Generation.open
    opening = asyncio.Event()

    async def slowly(*arguments: object, **how: object) -> Generation:
        opening.set()
        await asyncio.sleep(0.05)
        return await open_archive(*arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Generation, "open", slowly)
    preparing = asyncio.create_task(archive.prepare(identity(B, 2), "source-b:3306", "mysql-bin.000007"))
    await opening.wait()
    preparing.cancel()
    await asyncio.wait({preparing})
    assert preparing.cancelled()
    await archive.discard_prepared()
    assert not (tmp_path / "g0002").exists()
    made = await archive.prepare(identity(B, 2), "source-b:3306", "mysql-bin.000007")
    assert made.number == 2
    await archive.close()
