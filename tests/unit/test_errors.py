"""One root for all errors, and one place that knows how a command ends with each of them."""

import ast
import builtins
import copy
import errno
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.errors import ExitCode, RelayError, StatementRefused
from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveWriteError
from relay.commands.outcome import CommandFailed, exit_code_of
from relay.object_store.object_errors import StoreRefused, StoreUnreachable
from relay.packed.packed_errors import PackedDamaged
from relay.upstream.source.source_errors import FailureKind, UpstreamError

ROOT = Path(__file__).resolve().parents[2]


def trees() -> Iterator[tuple[str, ast.Module]]:
    for package in ("protocol", "relay"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def bases() -> dict[str, list[str]]:
    """Every class of the product with the names of its bases. No name is there twice: `test_layering.py`."""
    return {
        node.name: [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        for _path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def is_exception(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def reached(name: str, known: dict[str, list[str]]) -> set[str]:
    """The class and all classes that it is made of."""
    return {name}.union(*(reached(base, known) for base in known.get(name, ())))


def test_every_exception_derives_from_the_root() -> None:
    known = bases()
    own = {name for name in known if any(map(is_exception, reached(name, known)))}
    assert len(own) > 50
    assert {name for name in own if "RelayError" not in reached(name, known)} == set()


def test_no_handler_chooses_an_exit_code_for_an_error_that_has_one() -> None:
    """`CommandFailed(text, error.exit_code)` adds words to an error, and keeps its code."""
    known = bases()
    found = []
    for path, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ExceptHandler) or node.type is None:
                continue
            caught = {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)}
            if any("RelayError" in reached(name, known) for name in caught):
                found += [
                    f"{path}:{part.lineno}"
                    for part in ast.walk(node)
                    if isinstance(part, ast.Attribute) and ast.unparse(part).startswith("ExitCode.")
                ]
    assert found == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandFailed("no"), ExitCode.WRONG_USE),
        (CommandFailed("no", ExitCode.FINDINGS), ExitCode.FINDINGS),
        (ArchiveDamaged("a hole", file="a.000001", offset=4, boundary=4), ExitCode.ARCHIVE_DAMAGED),
        (ArchiveWriteError("full", file=None, offset=None, errno=errno.ENOSPC), ExitCode.WRONG_USE),
        (ArchiveWriteError("worn out", file=None, offset=None, errno=errno.EIO), ExitCode.ARCHIVE_DAMAGED),
        (StoreUnreachable("no answer", url="s3://b"), ExitCode.SOURCE_UNREACHABLE),
        (StoreRefused("not allowed", url="s3://b"), ExitCode.WRONG_USE),
        (UpstreamError(FailureKind.NETWORK, "no answer"), ExitCode.SOURCE_UNREACHABLE),
        (UpstreamError(FailureKind.ARCHIVE, "full"), ExitCode.ARCHIVE_DAMAGED),
        (OSError(errno.EACCES, "not allowed"), ExitCode.WRONG_USE),
        (ValueError("?"), ExitCode.BUG),
        (StatementRefused(1064, "no command ends with it"), ExitCode.BUG),
    ],
)
def test_an_error_has_one_exit_code(error: Exception, code: ExitCode) -> None:
    assert exit_code_of(error) is code


def test_the_text_of_an_error_has_the_finding_the_place_and_the_next_step() -> None:
    error = RelayError("it ends there", "Fetch it again.", file="a.000001", offset=4)
    assert str(error) == "it ends there (a.000001, offset 4). Fetch it again."
    assert str(RelayError("it is missing", file="a.000001")) == "it is missing (a.000001)"
    assert str(RelayError("It ends there.", "Fetch it again.")) == "It ends there. Fetch it again."


def test_a_log_line_has_the_fields_that_are_not_empty() -> None:
    assert RelayError("it ends there", file="a.000001", offset=0).fields() == {
        "what": "it ends there",
        "file": "a.000001",
        "offset": 0,
    }


@pytest.mark.parametrize(
    "error",
    [
        PackedDamaged("cut", file="a.000001", offset=7, advice="Restore it."),
        StoreUnreachable("no answer", url="s3://b/k"),
        UpstreamError(FailureKind.SETUP, "no binlog", "Turn it on.", number=1236),
    ],
)
@pytest.mark.parametrize("sent", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy])
def test_an_error_arrives_whole_in_another_process(error: RelayError, sent: object) -> None:
    assert callable(sent)
    arrived = sent(error)
    assert (type(arrived), str(arrived), vars(arrived)) == (type(error), str(error), vars(error))
