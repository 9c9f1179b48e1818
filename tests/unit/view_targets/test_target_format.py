"""How a file of a view for an older target begins."""

import struct
from uuid import UUID

import pytest

from protocol.binlog.format_description import decode_format_description
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from relay.view.rules.settings import TARGETS, ViewSettings
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.rules.targets.known.target_collations import collation_name, collation_number, is_known, of_same_charset
from relay.view.rules.targets.target_format import target_format, target_previous_gtids
from relay.view.translate.file_head import checksum_size, described, format_body, has_wrong_checksums, previous_body

LENGTHS = bytes.fromhex("000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000")
BODY = struct.pack("<H50sIB", 4, b"9.7.4-2", 1_795_423_210, 19) + LENGTHS + b"\1"


def settings(target: str) -> ViewSettings:
    return ViewSettings("v", "keep", UUID(int=1), target=target)


def test_every_target_that_can_be_configured_is_known() -> None:
    assert tuple(TARGETS_BY_NAME) == TARGETS


@pytest.mark.parametrize(
    ("target", "count", "gtid"),
    [("mysql-5.6", 35, 25), ("mysql-5.7", 38, 42), ("mysql-8.0", 41, 42), ("mysql-9.7", 42, 42)],
)
def test_the_target_is_told_of_the_types_that_it_knows(target: str, count: int, gtid: int) -> None:
    made = decode_format_description(target_format(BODY, settings(target)) + bytes(4))
    assert (len(made.post_header_lengths), made.post_header_length(33), made.post_header_length(34)) == (
        count,
        gtid,
        gtid,
    )
    assert (made.server_version, made.created, made.checksum) == ("9.7.4-2", 1_795_423_210, 1)
    assert made.post_header_length(30) == 10


def test_5_5_gets_a_format_without_checksums() -> None:
    made = decode_format_description(target_format(BODY, settings("mysql-5.5")))
    assert (made.server_version, made.has_checksum_field, len(made.post_header_lengths)) == ("5.5.62-log", False, 27)


def test_a_file_for_5_5_has_no_checksums_and_no_list_of_gtids() -> None:
    event = bytes(19) + BODY + bytes(4)
    known = described(event)
    for target, size, wrong in (("mysql-5.5", 0, True), ("mysql-5.6", 4, False), ("mysql-9.7", 4, False)):
        assert (checksum_size(known, settings(target)), has_wrong_checksums(known, settings(target))) == (size, wrong)
    assert format_body(event, settings("mysql-5.5")) == target_format(BODY, settings("mysql-5.5"))
    assert format_body(event, settings("mysql-9.7")) == BODY
    assert previous_body(GtidSet(), "9.7.4", settings("mysql-5.5")) is None


def test_a_view_without_gtids_has_no_previous_ones() -> None:
    uuid = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
    own = GtidSet.from_text(f"{uuid}:1-5,{uuid}:blue:1-7")
    plain = encode_gtid_set(GtidSet.from_text(f"{uuid}:1-5"))
    anonymous = ViewSettings("v", "anonymous", UUID(int=1), target="mysql-5.6")
    assert previous_body(own, "9.7.4", anonymous) == bytes(8)
    assert previous_body(own, "9.7.4", settings("mysql-5.6")) == plain
    assert (
        previous_body(own, "9.7.4", settings("mysql-8.4"))
        == previous_body(own, "5.6.24", anonymous)
        == encode_gtid_set(own)
    )


def test_transactions_with_tags_are_no_previous_ones_for_versions_without_tags() -> None:
    uuid = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
    body = encode_gtid_set(GtidSet.from_text(f"{uuid}:1-5,{uuid}:blue:1-7"))
    made = target_previous_gtids(body, settings("mysql-5.6"))
    assert made is not None and decode_gtid_set(made) == GtidSet.from_text(f"{uuid}:1-5")
    # a set without tags in the form for tags, as servers write it that saw one
    made = target_previous_gtids(encode_gtid_set(GtidSet(), tagged=True), settings("mysql-8.0"))
    assert made == bytes(8)
    assert target_previous_gtids(body, settings("mysql-8.4")) == body
    assert target_previous_gtids(body, settings("mysql-5.5")) is None


def test_collations_that_a_version_has() -> None:
    old, middle, new = (TARGETS_BY_NAME[f"mysql-{version}"] for version in ("5.6", "5.7", "8.0"))
    for number in (1, 33, 45, 46, 83, 224, 247):
        assert is_known(number, old)
    for number in (76, 248, 255, 309, 323):
        assert not is_known(number, old) and is_known(number, new)
    assert is_known(249, middle) and not is_known(76, middle)
    assert (of_same_charset(309, old), of_same_charset(76, old), of_same_charset(248, old)) == (45, 33, None)
    assert collation_number("utf8mb4_0900_AI_ci") == 255 and collation_number("latin1_bin") is None
    assert (collation_name(246), collation_name(9999)) == ("utf8mb4_unicode_520_ci", "number 9999")
