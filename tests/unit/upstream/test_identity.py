"""Who the relay is to its source, who else claims to be that, and whose binlogs the archive holds."""

import os
import stat
from pathlib import Path

import pytest
import structlog.testing

from relay.archive.storage.archived_file import SourceIdentity
from relay.upstream.source.identity import (
    ListedReplica,
    Registration,
    check_replicas,
    check_source,
    earlier_registration,
    keep_registration,
    own_uuid,
)
from relay.upstream.source.source_errors import FailureKind, UpstreamError

UUID, OTHER_UUID = "11111111-2222-3333-4444-555555555555", "22222222-3333-4444-5555-666666666666"
OWN = Registration(4242, "relay-host", 3307)
KNOWN = SourceIdentity("mysql", "8.0.43", 1, UUID)


def test_the_uuid_is_made_once(tmp_path: Path) -> None:
    assert own_uuid(tmp_path) == own_uuid(tmp_path)


def test_a_uuid_that_cannot_be_read_is_made_anew_and_said(tmp_path: Path) -> None:
    (tmp_path / "server_uuid").write_text("nonsense")
    with structlog.testing.capture_logs() as logs:
        made = own_uuid(tmp_path)
    assert own_uuid(tmp_path) == made and [line["event"] for line in logs] == ["server_uuid_unreadable"]


def test_a_registration_is_kept(tmp_path: Path) -> None:
    assert earlier_registration(tmp_path) is None
    keep_registration(tmp_path, OWN)
    assert earlier_registration(tmp_path) == OWN


def test_a_registration_is_on_the_disk_under_its_name_when_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    for call in ("fsync", "fdatasync"):
        monkeypatch.setattr(
            os, call, lambda fd: synced.append((stat.S_ISDIR(os.fstat(fd).st_mode), os.listdir(tmp_path)))
        )
    keep_registration(tmp_path, OWN)
    assert synced == [(False, ["registration.json.tmp"]), (True, ["registration.json"])]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"server_id": "x", "host": "", "port": 1}'])
def test_a_registration_that_cannot_be_read_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "registration.json").write_text(text)
    with structlog.testing.capture_logs() as logs:
        assert earlier_registration(tmp_path) is None
    assert [line["event"] for line in logs] == ["registration_unreadable"]


@pytest.mark.parametrize(
    "listed",
    [
        ListedReplica(7, "another", 3306, None),
        ListedReplica(4242, "relay-host", 3307, None),
        ListedReplica(4242, "relay-host", 3307, UUID),
        ListedReplica(4242, "", 0, UUID),
        ListedReplica(4242, "where-it-was", 3307, UUID),
    ],
    ids=["another id", "ourselves", "ourselves by uuid", "an old relay that told no host", "where we were before"],
)
def test_others_and_ourselves_are_no_clash(listed: ListedReplica) -> None:
    with structlog.testing.capture_logs() as logs:
        check_replicas([listed], OWN, Registration(4242, "where-it-was", 3307), UUID)
    assert logs == []


def test_our_server_id_on_a_source_that_ends_the_others_stream_is_refused_with_its_place() -> None:
    with pytest.raises(UpstreamError, match="another-host:3306, has our server_id 4242") as caught:
        check_replicas([ListedReplica(4242, "another-host", 3306, None)], OWN, None, UUID)
    # Tried again: the other may be gone for long, and still be listed.
    assert (caught.value.name, caught.value.kind) == ("server_id_clash", FailureKind.AUTHENTICATION)


def test_our_server_id_on_a_source_that_tells_by_uuid_is_said() -> None:
    with structlog.testing.capture_logs() as logs:
        check_replicas([ListedReplica(4242, "another-host", 3306, OTHER_UUID)], OWN, None, UUID)
    assert [(line["event"], line["replica"]) for line in logs] == [("server_id_shared", "another-host:3306")]


def test_our_uuid_at_another_place_is_a_copied_archive() -> None:
    with pytest.raises(UpstreamError, match="archive directory was copied") as caught:
        check_replicas([ListedReplica(99, "another-host", 3307, UUID)], OWN, None, UUID)
    assert caught.value.name == "server_uuid_clash"


def test_the_sources_own_id_is_refused() -> None:
    with pytest.raises(UpstreamError, match="the source's own server_id"):
        check_source(None, KNOWN, 1, "db:3306", accept_change=True)


def test_a_first_source_and_the_same_one_are_no_change() -> None:
    assert not check_source(None, KNOWN, 4242, "db:3306", accept_change=False)
    upgraded = SourceIdentity("mysql", "8.4.0", 1, UUID)
    assert not check_source(KNOWN, upgraded, 4242, "db:3306", accept_change=False)


@pytest.mark.parametrize(
    ("known", "found"),
    [
        (KNOWN, SourceIdentity("mysql", "8.0.43", 1, OTHER_UUID)),
        (SourceIdentity("mariadb", "10.11", 1, None), SourceIdentity("mariadb", "10.11", 2, None)),
    ],
    ids=["uuid", "server_id where there is no uuid"],
)
def test_another_server_is_refused_unless_it_was_said_to_be_the_one(
    known: SourceIdentity, found: SourceIdentity
) -> None:
    with pytest.raises(UpstreamError, match="the archive is of") as caught:
        check_source(known, found, 4242, "db:3306", accept_change=False)
    assert caught.value.kind is FailureKind.IDENTITY
    assert check_source(known, found, 4242, "db:3306", accept_change=True)


def test_the_other_family_is_refused_whatever_was_said() -> None:
    with pytest.raises(UpstreamError, match="is a mariadb server"):
        check_source(KNOWN, SourceIdentity("mariadb", "10.11", 1, None), 4242, "db:3306", accept_change=True)
