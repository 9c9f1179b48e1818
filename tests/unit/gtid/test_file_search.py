"""Which file a replica that asks by GTID starts in. The cases with MariaDB's lists were tried on MariaDB 10.11."""

import random

import pytest

from protocol.gtid.file_search import Break, FileSearch, first_needed_list, lies_before, still_awaited
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList, GtidPosition

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
V = "3e11fa47-71ca-11e1-9e33-c80aa9429561"


def one(text: str) -> GtidSet:
    return GtidSet.from_text(text.replace("U", U).replace("V", V))


def search(*texts: str) -> FileSearch:
    made = FileSearch()
    for text in texts:
        made.append(one(text))
    return made


@pytest.mark.parametrize(
    ("held", "number"),
    [
        ("", 0),
        ("U:2", 0),
        ("U:1-3", 1),
        ("U:1-4:8", 1),
        ("U:4-6", 0),
        ("U:1-6", 2),
        ("U:1-9", None),
        ("U:1-20,V:1", None),
    ],
)
def test_the_first_file_with_something_that_the_replica_lacks_is_found(held: str, number: int | None) -> None:
    assert search("U:1-3", "U:4-6", "U:7-9").first_needed(one(held)) == number


def test_a_file_that_holds_nothing_is_never_needed() -> None:
    assert search("", "U:1", "").first_needed(one("")) == 1
    assert search("", "").first_needed(one("")) is None
    assert FileSearch().first_needed(one("U:1")) is None


def test_the_newest_file_grows() -> None:
    files = search("U:1-3", "U:4")
    files.extend_newest(one("U:4-9"))
    assert files.first_needed(one("U:1-8")) == 1
    assert files.inside(1) == one("U:4-9")


def test_purged_files_are_not_found_and_numbers_start_at_the_oldest_held() -> None:
    files = search(*(f"U:{number}" for number in range(1, 401)))
    files.drop_oldest(3)
    assert len(files) == 397
    assert files.first_needed(one("")) == 0
    assert files.inside(0) == one("U:4")
    files.drop_oldest(200)
    assert (len(files), files.inside(0), files.first_needed(one("U:204-300"))) == (197, one("U:204"), 97)
    with pytest.raises(IndexError):
        files.inside(197)
    files.drop_oldest(1000)
    assert (len(files), files.first_needed(one(""))) == (0, None)
    files.append(one("U:5"))
    assert files.first_needed(one("")) == 0


def test_the_files_that_hold_a_transaction_are_found() -> None:
    files = search(*(f"U:{number},V:{1 + number // 10}" for number in range(1, 301)))
    assert files.holding(one("U:77")) == [76]
    assert files.holding(one("U:7:299")) == [6, 298]
    assert files.holding(one("U:1000")) == []


def test_what_is_in_the_later_files_is_all_there() -> None:
    files = search(*(f"U:{number}" for number in range(1, 301)))
    assert one("U:290-300") <= files.union_from(289)
    assert not files.union_from(289).meets(one("U:1-256"))


def test_a_search_in_many_files_finds_what_a_look_at_each_finds() -> None:
    chance = random.Random(23)
    insides = []
    numbers = {"U": 1, "V": 1}
    for _ in range(700):
        texts = []
        for name in "UV":
            if chance.random() < 0.7:
                stop = numbers[name] + chance.randrange(1, 5)
                texts.append(f"{name}:{numbers[name]}-{stop}")
                numbers[name] = stop + chance.choice([1, 1, 1, 3])
        insides.append(one(",".join(texts)))
    files = FileSearch()
    for inside in insides:
        files.append(inside)
    for _ in range(60):
        held = one(f"U:1-{chance.randrange(1, 1800)}:1900,V:1-{chance.randrange(1, 1800)}")
        wanted = next((number for number, inside in enumerate(insides) if not inside <= held), None)
        assert files.first_needed(held) == wanted


# Heads of three files: 0-1-1 0-1-2 0-2-3 | 0-1-4 1-1-1 0-2-10 | 0-1-11 1-1-2 2-1-1
LISTS = [GtidList.from_text(text) for text in ("", "0-1-2,0-2-3", "0-1-4,0-2-10,1-1-1")]


@pytest.mark.parametrize(
    ("position", "number", "awaited"),
    [
        ("", 0, []),
        ("0-1-2", 0, ["0-1-2"]),
        ("0-2-3", 1, []),
        ("0-1-2,1-1-1", 0, ["0-1-2", "1-1-1"]),
        ("0-1-4,1-1-1", 1, ["0-1-4", "1-1-1"]),
        ("0-2-10,1-1-1", 2, []),
        ("0-1-11,1-1-2,2-1-1", 2, ["0-1-11", "1-1-2", "2-1-1"]),
        ("0-2-7", 1, ["0-2-7"]),
        ("0-1-20", 1, ["0-1-20"]),
        ("9-1-5,0-1-11,1-1-2,2-1-1", 2, ["0-1-11", "1-1-2", "2-1-1", "9-1-5"]),
    ],
)
def test_a_mariadb_replica_starts_in_the_file_that_a_server_chooses(
    position: str, number: int, awaited: list[str]
) -> None:
    asked = GtidPosition.from_text(position)
    assert first_needed_list(LISTS, asked) == number
    assert [str(gtid) for gtid in still_awaited(LISTS[number], asked)] == awaited


# Domain 11 was taken out of the source's state before the files 3 and 6.
FORGETFUL = [
    GtidList.from_text(text)
    for text in ("0-1-1,11-5-1", "0-1-2,11-5-3", "0-1-2,11-5-4", "0-1-2", "0-1-3", "0-1-4,11-5-1", "0-1-4", "0-1-5")
]


BREAKS = [Break(3, GtidList.from_text("11-5-4")), Break(6, GtidList.from_text("11-5-1"))]


@pytest.mark.parametrize(
    ("position", "number"),
    [
        ("0-1-2", 3),  # as one has it that was made from a backup taken since
        ("0-1-3,11-5-9", 4),
        ("0-1-4", 6),
        ("0-1-9,11-5-4", 7),
        ("0-1-9,11-5-3", 1),  # what it lacks of the domain is here
        ("0-1-1,11-5-1", 0),
        ("0-1-1,11-5-3", 0),
        ("0-1-1", None),
    ],
)
def test_the_newest_file_is_found_around_domains_that_were_forgotten(position: str, number: int | None) -> None:
    assert first_needed_list(FORGETFUL, GtidPosition.from_text(position), BREAKS) == number


@pytest.mark.parametrize(("position", "number"), [("0-1-9,11-5-3", 5), ("0-1-2,11-5-2", 1), ("0-1-1,11-5-1", None)])
def test_what_is_in_no_file_of_a_domain_that_was_forgotten_is_not_expected(position: str, number: int | None) -> None:
    breaks = [Break(each.number - 2, each.forgotten) for each in BREAKS]
    assert first_needed_list(FORGETFUL[2:], GtidPosition.from_text(position), breaks) == number


@pytest.mark.parametrize("position", ["", "0-1-2", "0-2-10"])
def test_a_position_before_the_oldest_file_is_in_none(position: str) -> None:
    assert first_needed_list(LISTS[2:], GtidPosition.from_text(position)) is None
    assert not lies_before(LISTS[2], GtidPosition.from_text(position))


def test_the_oldest_of_many_files_hold_together_what_each_holds() -> None:
    made = search(*(f"U:{number}" for number in range(1, 301)))
    assert made.union_of_oldest(290) == one("U:1-290")
    made.drop_oldest(5)
    assert one("U:6-290") <= made.union_of_oldest(285) <= one("U:1-290")


@pytest.mark.parametrize("before", [0, 1, 127, 128, 129])
@pytest.mark.parametrize("count", [0, 1, 128, 300])
def test_many_files_at_once_are_as_one_after_the_other(before: int, count: int) -> None:
    insides = [one(f"U:{number * 3 + 1}-{number * 3 + 2}") for number in range(before + count)]
    each, at_once = FileSearch(), FileSearch()
    for number, inside in enumerate(insides):
        each.append(inside)
        if number < before:
            at_once.append(inside)
    assert at_once.extend(insides[before:]) == GtidSet(gtid for inside in insides[before:] for gtid in inside.members())
    assert len(at_once) == len(each)
    assert [at_once.inside(number) for number in range(len(each))] == insides
    for held in ("", "U:1-200", "U:1-390", "U:1-2000"):
        assert at_once.first_needed(one(held)) == each.first_needed(one(held))
        assert at_once.holding(one("U:388-400")) == each.holding(one("U:388-400"))
