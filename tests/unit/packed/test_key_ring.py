"""Where keys come from, and that nothing shows one."""

import base64
import pickle
from pathlib import Path

import pytest

from relay.packed.key_ring import KeyRing, KeySource
from relay.packed.packed_errors import KeyUnreadable

KEY = bytes(range(100, 132))
FORMS = {"raw": KEY, "hex": KEY.hex().encode() + b"\n", "base64": base64.b64encode(KEY) + b"\n"}


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_read_from_a_file_the_environment_or_systemd(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_bytes(FORMS[form])
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    sources = [KeySource("a", file=str(tmp_path / "key")), KeySource("b", credential="key")]
    if form != "raw":
        monkeypatch.setenv("RELAY_KEY", FORMS[form].decode())
        sources.append(KeySource("c", env="RELAY_KEY"))
    for source in sources:
        assert source.read() == KEY


def test_a_key_that_cannot_be_had_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    (tmp_path / "short").write_text("abcd")
    for source, said in (
        (KeySource("a", file=str(tmp_path / "none")), "none: No such file"),
        (KeySource("a", file=str(tmp_path / "short")), "no key of 32 bytes; `openssl rand -hex 32` makes one"),
        (KeySource("a", env="NO_SUCH_KEY"), "NO_SUCH_KEY is not in the environment"),
        (KeySource("a", credential="x"), "CREDENTIALS_DIRECTORY is not in the environment"),
    ):
        with pytest.raises(KeyUnreadable, match=r"key 'a': ") as told:
            KeyRing.load([source])
        assert said in str(told.value) and "abcd" not in str(told.value)
    with pytest.raises(KeyUnreadable, match="the active key is 'b'"):
        KeyRing({"a": KEY}, "b")


def test_nothing_shows_a_key() -> None:
    ring = KeyRing({"a": KEY}, "a")
    assert repr(ring) == "KeyRing(ids=['a'], active='a')"
    with pytest.raises(TypeError):
        pickle.dumps(ring)
