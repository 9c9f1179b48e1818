"""Which addresses are the relay's own."""

import pytest

from relay.upstream.attach.own_address import is_own_address


@pytest.mark.parametrize(
    "host, port, listen_host, own",
    [
        ("127.0.0.1", 3307, "0.0.0.0", True),
        ("127.0.0.1", 3307, "127.0.0.1", True),
        ("localhost", 3307, "::", True),
        ("127.0.0.9", 3307, "127.0.0.1", False),
        ("127.0.0.1", 3306, "0.0.0.0", False),
        ("192.0.2.1", 3307, "0.0.0.0", False),
        ("192.0.2.1", 3307, "192.0.2.1", False),
        ("no-such-host.invalid", 3307, "0.0.0.0", False),
        ("127.0.0.1", 3307, "no-such-host.invalid", False),
    ],
)
def test_an_address_is_ours_where_it_is_local_and_the_listener_takes_it(
    host: str, port: int, listen_host: str, own: bool
) -> None:
    assert is_own_address(host, port, listen_host, 3307) is own
