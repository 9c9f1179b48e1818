"""A secret of the relay's own: the same after a restart, and nobody else's."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from relay.service.kept_secret import kept_secret

SIZE = 32


def test_it_is_the_same_each_time_and_the_relays_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    first = kept_secret(path, SIZE)
    assert len(first) == SIZE and kept_secret(path, SIZE) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert kept_secret(tmp_path / "other", SIZE) != first


def linked(path: Path) -> None:
    (path.parent / "elsewhere").write_bytes(b"x" * SIZE)
    path.symlink_to(path.parent / "elsewhere")


def readable(path: Path) -> None:
    path.write_bytes(b"x" * SIZE)
    path.chmod(0o644)


@pytest.mark.parametrize(
    "spoil", [linked, readable, lambda path: path.write_bytes(b"cut"), lambda path: os.mkfifo(path, 0o600)]
)
def test_what_others_may_have_written_or_read_is_replaced(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    path = tmp_path / "secret"
    spoil(path)
    made = kept_secret(path, SIZE)
    assert made != b"x" * SIZE and not path.is_symlink() and kept_secret(path, SIZE) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    elsewhere = tmp_path / "elsewhere"
    assert not elsewhere.exists() or elsewhere.read_bytes() == b"x" * SIZE
