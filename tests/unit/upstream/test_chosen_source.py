"""Which source a start of the relay begins with: relay.toml, what was attached to last, and the command line."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from relay.config import ServerSource
from relay.upstream.chosen_source import address, chosen, first_source, keep_chosen, kept_chosen, with_address


def source(host: str, port: int = 3306, user: str = "repl") -> ServerSource:
    return ServerSource(host=host, port=port, user=user, password=SecretStr("secret"), server_id=4242)


A, B, C = source("a"), source("b", 3310, "other"), source("c")


def test_what_was_kept_is_read_again_and_holds_no_password(tmp_path: Path) -> None:
    assert kept_chosen(tmp_path) is None
    keep_chosen(tmp_path, chosen(B, (A, B)))
    assert kept_chosen(tmp_path) == chosen(B, (A, B))
    assert "secret" not in (tmp_path / "source.json").read_text()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": "b"}', '{"port": "x"}'])
def test_what_cannot_be_read_leaves_it_to_the_configuration(tmp_path: Path, text: str) -> None:
    (tmp_path / "source.json").write_text(text)
    assert kept_chosen(tmp_path) is None


def test_a_new_archive_begins_with_the_first() -> None:
    first = first_source((A, B), None, None)
    assert (first.settings, first.named) == (A, False)


def test_one_of_the_list_that_was_chosen_is_gone_on_with_as_the_list_has_it() -> None:
    first = first_source((A, B), chosen(B, (A, B)), None)
    assert (first.settings, first.named) == (B, False)
    # Also when others were added since.
    assert first_source((C, A, B), chosen(B, (A, B)), None).settings == B


def test_one_that_a_statement_chose_is_gone_on_with_while_the_file_says_what_it_said() -> None:
    named = source("d", 3333, "somebody")
    first = first_source((A, B), chosen(named, (A, B)), None)
    assert (address(first.settings), first.settings.user, first.named) == ("d:3333", "somebody", False)
    assert first.settings.password_text() == "secret"


def test_a_file_that_names_others_than_before_counts_again() -> None:
    first = first_source((C,), chosen(source("d"), (A, B)), None)
    assert (first.settings, first.named) == (C, True)


def test_a_source_that_moved_in_the_file_is_named_by_it() -> None:
    first = first_source((C,), chosen(A, (A,)), None)
    assert (first.settings, first.named) == (C, True)


def test_the_command_line_counts_before_all() -> None:
    first = first_source((A, B), chosen(A, (A, B)), ("b", 3310))
    assert (first.settings, first.named) == (B, True)
    first = first_source((A, B), None, ("e", 3307))
    assert (address(first.settings), first.settings.user, first.named) == ("e:3307", "repl", True)


def test_an_address_is_found_whatever_its_case() -> None:
    assert with_address((A, B), "B", 3310) is B
