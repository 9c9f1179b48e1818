"""As whom the relay shows itself, and replicas that have somebody else's ids."""

from typing import Any

import pytest

from protocol.errors import ErrorCode, PositionRefused
from protocol.statements import SourceFacts
from relay.downstream.connection.presentation import Presentation

SOURCE_UUID = "11111111-2222-3333-4444-555555555555"
OWN_UUID = "99999999-2222-3333-4444-555555555555"
SOURCE = SourceFacts("mysql", "5.6.24-log", 1, SOURCE_UUID, "CRC32")
OWN: dict[str, Any] = {"server_id": 4242, "server_uuid": OWN_UUID}


def test_the_relay_shows_its_source_unless_told_otherwise() -> None:
    assert Presentation(**OWN).facts(SOURCE) == SOURCE


def test_a_relay_that_shows_itself_has_its_own_ids_and_the_sources_version() -> None:
    facts = Presentation(present_as="relay", **OWN).facts(SOURCE)
    assert (facts.server_id, facts.server_uuid, facts.version) == (4242, OWN_UUID, "5.6.24-log")


def test_another_version_is_shown_without_the_prefix_of_mariadbs_greeting() -> None:
    assert Presentation(version="5.5.5-10.6.1-MariaDB").facts(SOURCE).version == "10.6.1-MariaDB"


@pytest.mark.parametrize("present_as", ["source", "relay"])
@pytest.mark.parametrize(
    ("server_id", "uuid", "words"),
    [
        (1, "a" * 36, "server_id 1, and so has the source"),
        (4242, "", "server_id 4242, and so has binlog-relay itself"),
        (7, SOURCE_UUID, f"server_uuid {SOURCE_UUID}, and so has the source"),
        (7, OWN_UUID, f"server_uuid {OWN_UUID}, and so has binlog-relay itself"),
    ],
)
def test_a_replica_with_anothers_id_is_stopped_by_name(present_as: Any, server_id: int, uuid: str, words: str) -> None:
    with pytest.raises(PositionRefused, match=words) as caught:
        Presentation(present_as=present_as, **OWN).check_replica(SOURCE, server_id, uuid)
    assert caught.value.number == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG


@pytest.mark.parametrize("uuid", ["", "a" * 36])
@pytest.mark.parametrize("presentation", [Presentation(), Presentation(**OWN)])
def test_a_replica_with_ids_of_its_own_is_served(presentation: Presentation, uuid: str) -> None:
    presentation.check_replica(SOURCE, 7, uuid)
