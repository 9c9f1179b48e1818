"""Each collation of a MariaDB has one of MySQL that stands for it, or a stop with a name; none is passed over."""

import pytest

from protocol.binlog.schema.column_charsets import charset_of_column
from relay.view.rules.mariadb.status.mariadb_collations import MariadbCollations
from relay.view.rules.mariadb.status.source_collations import (
    NUMBERS_BY_NAME,
    SOURCE_COLLATIONS,
    charset_in,
    plain_charset,
)
from relay.view.rules.mariadb.status.target_names import TARGET_NAMES, TARGET_NUMBERS
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.stops.stop_reason import Untranslatable

MYSQL_97 = TARGETS_BY_NAME["mysql-9.7"]
DEFAULTS_OF_118 = {33: 2048, 35: 2560, 45: 2304, 54: 2816, 60: 3072}
ALL = MariadbCollations({}, MYSQL_97)


def reason(make: object, *arguments: object) -> str:
    with pytest.raises(Untranslatable) as stopped:
        make(*arguments)  # type: ignore[operator]
    assert stopped.value.reason.name == "collation_not_in_target"
    return stopped.value.reason.message


def test_every_number_is_given_one_of_the_same_character_set_or_stops() -> None:
    stops = set()
    for number, source in SOURCE_COLLATIONS.items():
        try:
            given = ALL.number_of(number)
        except Untranslatable:
            stops.add(source.name)
            assert source.is_nopad, source
            continue
        assert charset_in(TARGET_NAMES[given]) == source.charset
    assert all("nopad" in name for name in stops)
    assert not {name for name in stops if name.startswith("utf8mb4_uca1400")}


def test_every_number_has_one_of_its_character_set_where_nothing_is_compared() -> None:
    for number, source in SOURCE_COLLATIONS.items():
        assert charset_in(TARGET_NAMES[ALL.number_of_charset(number)]) == source.charset


def test_the_character_sets_are_those_that_rows_are_read_by() -> None:
    for number, source in SOURCE_COLLATIONS.items():
        assert charset_of_column(number) == plain_charset(source.charset)


def test_a_name_stands_for_one_number() -> None:
    assert len(NUMBERS_BY_NAME) == len(SOURCE_COLLATIONS)
    assert len(TARGET_NUMBERS) == len(TARGET_NAMES)


@pytest.mark.parametrize("number", [*range(1, 256, 7), 45, 46, 63, 224, 246, 255, 278])
def test_what_both_servers_have_stays(number: int) -> None:
    if number in SOURCE_COLLATIONS:
        assert ALL.is_same(number)
        assert ALL.number_of(number) == number


@pytest.mark.parametrize("number", [0, 17, 100, 303, 643, 1087, 2216, 2304 + 168, 4095, 65535])
def test_a_number_that_no_server_has_stops_the_view(number: int) -> None:
    assert f"number {number}" in reason(ALL.number_of, number)
    assert "newer binlog-relay" in reason(ALL.number_of_charset, number)


def test_spaces_at_the_end_that_no_collation_of_the_replicas_tells_apart_are_for_somebody_to_decide() -> None:
    told = reason(ALL.number_of, 1032)
    assert "1032 (latin1_swedish_nopad_ci)" in told
    assert '"latin1_swedish_nopad_ci" = "latin1_swedish_ci"' in told
    assert MariadbCollations({1032: 8}, MYSQL_97).number_of(1032) == 8
    assert ALL.number_of_charset(1032) == 8


def test_settings_decide_before_all_else() -> None:
    chosen = MariadbCollations({2304: 246, 45: 46}, TARGETS_BY_NAME["mysql-8.4"])
    assert chosen.number_of(2304) == 246
    assert chosen.name_of("utf8mb4_uca1400_ai_ci") == "utf8mb4_unicode_520_ci"
    assert chosen.number_of(45) == chosen.number_of_charset(45) == 46
    assert not chosen.is_same(45)


@pytest.mark.parametrize(("given", "part"), [(8, "of another character set"), (2047, "MySQL 9.7 does not have")])
def test_a_setting_that_would_turn_texts_into_others_stops_the_view(given: int, part: str) -> None:
    assert part in reason(MariadbCollations({2304: given}, MYSQL_97).number_of, 2304)


@pytest.mark.parametrize(
    ("name", "charset", "given"),
    [
        ("utf8mb4_general_ci", "", "utf8mb4_general_ci"),
        ("Latin1_Swedish_CI", "latin1", "Latin1_Swedish_CI"),
        ("utf8_bin", "utf8", "utf8_bin"),
        ("utf8mb4_croatian_mysql561_ci", "", "utf8mb4_croatian_ci"),
        ("utf8mb4_uca1400_swedish_as_cs", "", "utf8mb4_sv_0900_as_cs"),
        ("uca1400_as_cs", "utf8mb4", "utf8mb4_0900_as_cs"),
        ("UCA1400_NOPAD_AS_CI", "UTF8MB4", "utf8mb4_0900_as_ci"),
        ("utf8mb4_nopad_bin", "", "utf8mb4_0900_bin"),
        ("utf8_uca1400_ai_cs", "", "utf8mb3_bin"),
    ],
)
def test_a_name_becomes_that_of_the_replicas(name: str, charset: str, given: str) -> None:
    assert ALL.name_of(name, charset) == given


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("latin1_swedish_ci", True),
        ("utf8mb4_uca1400_ai_ci", True),
        ("utf8mb3_uca1400_ai_ci", True),
        ("utf8mb4_uca1400_nopad_ai_ci", True),
        ("utf8mb4_uca1400_swedish_nopad_as_cs", True),
        ("utf8mb4_nopad_bin", True),
        ("utf8mb4_croatian_mysql561_ci", True),
        ("utf8mb4_uca1400_swedish_ai_ci", False),  # spaces at the end
        ("utf8mb4_uca1400_as_cs", False),  # the same
        ("utf8mb4_uca1400_nopad_ai_cs", False),  # finer
        ("utf8mb4_uca1400_persian_nopad_ai_ci", False),
        ("utf8mb3_uca1400_as_cs", False),
        ("utf8mb4_croatian_ci", True),
        ("latin1_swedish_nopad_ci", False),
    ],
)
def test_it_is_known_by_which_collations_statements_find_the_same_rows(name: str, alike: bool) -> None:
    number = NUMBERS_BY_NAME[name]
    assert ALL.compares_alike(number) is alike
    assert MariadbCollations({number: 46}, MYSQL_97).compares_alike(number) is False
    assert not ALL.compares_alike(4095)


@pytest.mark.parametrize("name", ["uca1400_ai_ci", "utf8mb4_klingon_ci", "", "utf8mb4_0900_as_klingon"])
def test_a_name_that_is_none_stops_the_view(name: str) -> None:
    assert "which collation of MySQL 9.7" in reason(ALL.name_of, name)


def test_the_croatian_of_mariadb_has_another_number_than_the_one_that_mysql_calls_so() -> None:
    assert NUMBERS_BY_NAME["utf8mb4_croatian_ci"] == 608
    assert ALL.number_of(608) == ALL.number_of(245) == TARGET_NUMBERS["utf8mb4_croatian_ci"] == 245
    assert ALL.name_of("utf8mb4_croatian_ci") == ALL.name_of("utf8mb4_croatian_mysql561_ci") == "utf8mb4_croatian_ci"
    assert not ALL.is_same(608)


def test_a_character_set_without_a_collation_is_given_the_one_that_it_has_at_the_source() -> None:
    assert ALL.default_of("utf8mb4", {}) == "utf8mb4_general_ci"
    assert ALL.default_of("UTF8MB3", {}) == ALL.default_of("utf8", {}) == "utf8mb3_general_ci"
    assert ALL.default_of("latin1", DEFAULTS_OF_118) == "latin1_swedish_ci"
    assert ALL.default_of("binary", DEFAULTS_OF_118) == "binary"
    for charset, compiled in (("utf8mb4", 45), ("utf8", 33), ("ucs2", 35), ("utf16", 54), ("utf32", 60)):
        given = TARGET_NUMBERS[ALL.default_of(charset, DEFAULTS_OF_118)]
        assert given == ALL.number_of(DEFAULTS_OF_118[compiled]) != compiled


def test_a_character_set_that_no_server_has_stops_the_view() -> None:
    assert "klingon" in reason(ALL.default_of, "klingon", {})
