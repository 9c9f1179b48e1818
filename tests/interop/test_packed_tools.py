"""Real mysqlbinlog behind `archive cat`, and in front of `annotate`, where binlogs are packed, encrypted, or in a bucket."""

import io
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from deploy.servers import SERVERS
from relay.commands.archive_cat import cat
from relay.commands.binlogs.annotate import annotate
from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing, KeySource
from relay.packed_reads.archive_layer import note_tiers
from relay.packed_reads.tool_keys import KEYS_VARIABLE
from tests.conftest import ROOT
from tests.interop.conftest import ChainFactory
from tests.support.packed_archive import pack_away
from tests.support.s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, need_rclone
from tests.support.workload import light_workload

pytestmark = pytest.mark.interop

# The package of MySQL 5.6 has no mysqlbinlog. MySQL's cannot read MariaDB's events; MariaDB's reads both.
READERS: Final = {"mysql56": ("mysql97", "mariadb"), "mysql97": ("mysql97",), "mariadb": ("mariadb", "mariadb118")}
KEY: Final = "ab" * 32


@dataclass(frozen=True)
class Packed:
    """An archive that has each file stored in another way, and all of them as they were received, in `plain`."""

    source: str
    archive: Path
    config: Path
    plain: Path
    names: Sequence[str]
    urls: Sequence[str]
    """Of the packed files: on the disk, in the bucket; the second of each is encrypted."""
    environment: dict[str, str]


@pytest.fixture(scope="module", params=list(READERS))
def packed(
    request: pytest.FixtureRequest, module_chains: ChainFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Packed]:
    need_rclone()
    kind, place = request.param, tmp_path_factory.mktemp("packed")
    key = place / "key"
    key.write_text(KEY)
    keys = KeyRing.load([KeySource("one", file=str(key))], "one")
    chain = module_chains(kind, options=["--binlog-format=MIXED"])
    for number in range(4):
        light_workload(chain.source, database=f"d{number}")
        chain.source.sql("FLUSH BINARY LOGS")
    chain.wait_published()
    chain.relay.stop()
    archive, plain = chain.relay.archive, place / "plain"
    plain.mkdir()
    names = [binlog.name for binlog in chain.source.binlogs()]
    for name in names:
        (plain / name).write_bytes((archive / name).read_bytes())
    with S3Server(place / "s3") as storage:
        options = storage.options("a")
        store = ObjectStore(options)
        urls = []
        for name, where, ring in zip(names, (None, None, store, store), (None, keys, None, keys), strict=False):
            stored = pack_away(archive / name, archive, where, ring).stored_name
            urls.append(str(archive / stored) if where is None else f"s3://{BUCKET}/a/{stored}")
        note_tiers(archive, options, [KeySource("one", file=str(key))])
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{storage.port}",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            KEYS_VARIABLE: f"one={key}",
        }
        yield Packed(kind, archive, chain.relay.config, plain, names, urls, environment)


def printed(reader: str, *arguments: str, data: bytes | None = None) -> bytes:
    """What mysqlbinlog of this product prints, checksums verified, without a complaint."""
    done = subprocess.run(
        [*SERVERS[reader].mysqlbinlog(), "--no-defaults", "--verify-binlog-checksum", *arguments],
        input=data,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 and b"ERROR" not in done.stderr.upper(), done.stderr
    return done.stdout


def test_mysqlbinlog_reads_from_a_pipe_what_it_reads_from_the_plain_file(packed: Packed, tmp_path: Path) -> None:
    events = 0
    for name in packed.names:
        given = tmp_path / name
        with given.open("wb") as out:
            cat(packed.archive, name, out)
        for reader in READERS[packed.source]:
            wanted = printed(reader, str(packed.plain / name))
            assert printed(reader, "-", data=given.read_bytes()) == wanted
            events += wanted.count(b"\n# at ")
    assert events > 300


def test_the_command_of_the_documents_works_on_what_is_encrypted_in_the_bucket(packed: Packed) -> None:
    name, reader = packed.names[3], READERS[packed.source][0]
    with subprocess.Popen(
        [sys.executable, "-m", "relay", "archive", "cat", name, "--config", str(packed.config)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    ) as given:
        done = subprocess.run(
            [*SERVERS[reader].mysqlbinlog(), "--no-defaults", "-"], stdin=given.stdout, capture_output=True, check=True
        )
    assert given.returncode == 0
    assert done.stdout == printed(reader, str(packed.plain / name))


def annotations(place: Path, printed_by_mysqlbinlog: bytes) -> tuple[str, int]:
    """What annotate makes of it, and how many events were not in the binlog."""
    text = io.StringIO()
    violations, tally, broken = annotate(place, io.StringIO(printed_by_mysqlbinlog.decode("latin-1")), text)
    assert not violations and broken is None and tally.printed
    return text.getvalue(), tally.foreign


def test_annotate_says_the_same_of_a_packed_file_wherever_it_is(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in packed.environment.items():
        monkeypatch.setenv(name, value)
    reader = READERS[packed.source][0]
    for name, url in zip(packed.names, packed.urls, strict=False):
        text = printed(reader, str(packed.plain / name))
        wanted = annotations(packed.plain / name, text)
        assert wanted[0].count("# boundary: ") > 10 and not wanted[1]
        assert annotations(packed.archive / name, text) == annotations(Path(url), text) == wanted
