"""Every number of the kernel and the columns has one definition; what must repeat it for C, or names it for users, agrees."""

import importlib
import re
from types import ModuleType

import pytest

from protocol import framing, semisync
from protocol.binlog.boundary import BoundaryType
from protocol.binlog.event_type import EventType
from protocol.columns.codes import column_codes
from protocol.kernel import codes
from tests.support.kernel_builds import source_of

_ENUM = re.compile(r"^    (\w+) = (-?\w+)$", re.MULTILINE)
_MACRO = re.compile(r"^    #define CODES_(\w+) (\w+?)U?LL$", re.MULTILINE)
_OTHERS = ("FIRST_EVENT", "MAX_EVENT", "BAD_EVENT")
"""End like event types, and are none."""
_WIDE = re.compile(r'^    const u?int64_t (\w+) "CODES_(\w+)"$', re.MULTILINE)


def numbers(module: ModuleType) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, int)}


@pytest.mark.parametrize(
    "module",
    ["protocol.kernel.codes", "protocol.columns.codes.column_codes", "protocol.dependencies.write_set_codes"],
)
def test_the_constants_of_c_are_the_numbers_of_the_text(module: str) -> None:
    text = source_of(module).with_suffix(".pxd").read_text()

    in_c = {name: int(value, 0) for name, value in _ENUM.findall(text) + _MACRO.findall(text)}

    assert in_c == numbers(importlib.import_module(module))
    assert [name for name, _ in _MACRO.findall(text)] == [name for name, macro in _WIDE.findall(text) if name == macro]


def test_no_name_has_two_numbers() -> None:
    assert not numbers(codes).keys() & numbers(column_codes).keys()


def test_event_types_are_the_codes_of_events() -> None:
    assert {f"{member.name}_EVENT": member.value for member in EventType} == {
        name: value for name, value in numbers(codes).items() if name.endswith("_EVENT") and name not in _OTHERS
    }


def test_boundary_types_are_the_codes_of_boundaries() -> None:
    assert {member.name: getattr(codes, member.name) for member in BoundaryType} == dict(BoundaryType.__members__)


def test_the_kernels_numbers_of_packets_are_those_of_the_rest_of_the_protocol() -> None:
    """They stand twice: the kernel imports nothing of the protocol but its errors, and the protocol not its kernel."""
    kernel = (codes.PACKET_HEAD_SIZE, codes.MAX_PAYLOAD, codes.SEMI_SYNC_MAGIC)
    assert kernel == (framing.HEADER_BYTES, framing.MAX_CHUNK_BYTES, semisync.MAGIC)
