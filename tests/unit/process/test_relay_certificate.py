"""The relay's own certificate: every wrong file is named, with what to do, before anything listens."""

import datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from relay.config import ConfigError, load_config
from relay.process.certificates import CertificateError, load_server_tls
from tests.support.certificates import Authority, CertificateFiles

CONFIG = """
[source]
host = "127.0.0.1"
user = "repl"
password = "hunter2"
server_id = 7
[archive]
dir = "archive"
"""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path / "ca")


@pytest.fixture
def files(authority: Authority) -> CertificateFiles:
    return authority.server()


def refusal(certificate: Path, key: Path, client_ca: Path | None = None) -> CertificateError:
    with pytest.raises(CertificateError) as caught:
        load_server_tls(certificate, key, client_ca)
    return caught.value


def test_a_certificate_and_its_key_are_taken_and_described(files: CertificateFiles) -> None:
    tls = load_server_tls(files.certificate, files.key, files.authority)
    assert tls.subject == "CN=server"
    assert tls.problem(datetime.datetime.now(datetime.UTC)) is None


def test_a_missing_file_is_named(files: CertificateFiles, tmp_path: Path) -> None:
    assert refusal(tmp_path / "none", files.key).part == "cert"
    assert "No such file" in refusal(files.certificate, tmp_path / "none").what


def test_files_that_were_exchanged_are_named(files: CertificateFiles) -> None:
    assert "holds no certificate" in refusal(files.key, files.certificate).what
    assert "holds no private key" in refusal(files.certificate, files.certificate).what


def test_the_key_of_another_certificate_is_named(authority: Authority, files: CertificateFiles) -> None:
    other = authority.server("other")
    error = refusal(files.certificate, other.key)
    assert (error.part, "another certificate" in error.what) == ("key", True)


def test_an_encrypted_key_is_named_and_nothing_is_asked_at_the_terminal(
    files: CertificateFiles, tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    encrypted = tmp_path / "encrypted.key"
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    error = refusal(files.certificate, encrypted)
    assert "encrypted with a password" in error.what
    assert "openssl pkey" in error.advice


def test_an_authority_that_is_none_is_named(files: CertificateFiles) -> None:
    assert refusal(files.certificate, files.key, files.key).part == "client_ca"


def problems(directory: Path, text: str) -> dict[str, str]:
    path = directory / "relay.toml"
    path.write_text(CONFIG + text)
    path.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return {problem.key: str(problem) for problem in caught.value.problems}


ACCOUNT = '[[account]]\nuser = "r"\npassword = "hunter3"\n'


@pytest.mark.parametrize(
    ("text", "key", "part"),
    [
        ('[listen]\ntls_cert = "ca/server.pem"', "listen.tls_key", "is missing, and tls_cert is given"),
        ('[listen]\ntls_key = "ca/server.key"', "listen.tls_cert", "is missing, and tls_key is given"),
        ('[listen]\ntls_client_ca = "ca/ca.pem"', "listen.tls_cert", "TLS needs tls_cert and tls_key"),
        ('[listen]\ntls_cert = "none"\ntls_key = "ca/server.key"', "listen.tls_cert", "No such file"),
        ('[listen]\ntls_cert = "ca/server.pem"\ntls_key = "ca/ca.pem"', "listen.tls_key", "no private key"),
        (ACCOUNT + "require_tls = true", "account#1.require_tls", "no TLS is offered"),
        (ACCOUNT + "require_client_cert = true", "account#1.require_client_cert", "Give listen.tls_client_ca"),
        (ACCOUNT + "require_tls = 1", "account#1.require_tls", "true or false"),
        ("[listen]\nmax_login_failures = -1", "listen.max_login_failures", "from 0"),
        ("[listen]\nlogin_block_s = 0", "listen.login_block_s", "above 0"),
    ],
)
def test_a_mistake_in_the_configuration_of_tls_names_its_key(
    tmp_path: Path, files: CertificateFiles, text: str, key: str, part: str
) -> None:
    assert part in problems(tmp_path, text)[key]


def test_an_expired_certificate_is_a_warning(tmp_path: Path, authority: Authority) -> None:
    files = authority.server("late", valid_days=-1)
    path = tmp_path / "relay.toml"
    path.write_text(CONFIG + f'[listen]\ntls_cert = "{files.certificate}"\ntls_key = "{files.key}"\n' + ACCOUNT)
    path.chmod(0o600)
    files.key.chmod(0o600)
    (warning,) = load_config(path).warnings
    assert warning.key == "listen.tls_cert"
    assert "has expired" in warning.what


def test_a_key_that_all_can_read_is_a_warning(tmp_path: Path, files: CertificateFiles) -> None:
    files.key.chmod(0o644)
    path = tmp_path / "relay.toml"
    path.write_text(CONFIG + f'[listen]\ntls_cert = "{files.certificate}"\ntls_key = "{files.key}"\n' + ACCOUNT)
    path.chmod(0o600)
    assert [warning.key for warning in load_config(path).warnings] == ["listen.tls_key"]


def test_paths_are_relative_to_the_configuration(tmp_path: Path, files: CertificateFiles) -> None:
    path = tmp_path / "relay.toml"
    path.write_text(CONFIG + '[listen]\ntls_cert = "ca/server.pem"\ntls_key = "ca/server.key"\n' + ACCOUNT)
    path.chmod(0o600)
    tls = load_config(path).server_tls
    assert tls is not None
    assert tls.subject == "CN=server"
