"""Files and directories are made, changed and removed by `relay/disk/` alone: what follows no link there follows one elsewhere."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path for path in (ROOT / "relay").rglob("*.py") if path.relative_to(ROOT).parts[:2] != ("relay", "disk")
)
OF_OS = {
    "open", "mkdir", "makedirs", "rename", "renames", "replace", "remove", "unlink", "rmdir", "removedirs", "link", "symlink", "mkfifo",
    "mknod", "chmod", "lchmod", "fchmod", "chown", "lchown", "fchown", "truncate", "utime",
}  # fmt: skip
OF_SHUTIL = {
    "copy",
    "copy2",
    "copyfile",
    "copymode",
    "copystat",
    "copytree",
    "move",
    "rmtree",
    "chown",
    "unpack_archive",
}
OF_TEMPFILE = {"NamedTemporaryFile", "SpooledTemporaryFile", "mkstemp", "mktemp"}
OF_PATHS = {
    "mkdir", "touch", "write_text", "write_bytes", "unlink", "rmdir", "rename", "symlink_to", "hardlink_to", "chmod", "lchmod",
}  # fmt: skip
"""Methods that only paths have, and those of file layers, which are `relay/disk/` in the end."""
LAYERS = {"layer", "self._layer", "self.layer", "tables", "engines", "self._keys", "catalog", "self"}
"""What has methods of those names, and is no path."""
ELSEWHERE = {
    "relay/cli/command_line.py": {"os.open", "open"},  # /dev/null
    "relay/packing_process/throttle.py": {".write_text"},  # /proc/self
    "relay/packing_process/packer.py": {"open"},  # memory
    "relay/service/health_socket.py": {"os.fchmod"},  # a socket's, before it has a name
    # Only read: what the user named, which may be a link.
    "relay/binlog_tables/plan/store.py": {"os.open"},
    "relay/audit/runner/output.py": {"os.open"},
    "relay/binlog_file/binlog_scan.py": {"os.open"},
    "relay/upstream/directory_source.py": {"os.open"},
    "relay/repair/file_origin.py": {"os.open"},
}


CALLS = re.compile(
    rf"\b(?:os\.(?:{'|'.join(sorted(OF_OS))})|shutil\.\w+|tempfile\.\w+|sqlite3\.connect)\b|\b(?:open|{'|'.join(sorted(OF_PATHS))})\("
)
"""A file without any of these has nothing to find, and is not parsed: formatted source has no spaces in them."""


def uses(path: Path) -> set[str]:
    """What a file calls, or gives away to be called, that makes or changes a name or a file."""
    found = set[str]()
    text = path.read_text(encoding="utf-8")
    if not CALLS.search(text):
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            for module, names in (("os", OF_OS), ("shutil", OF_SHUTIL), ("tempfile", OF_TEMPFILE)):
                if node.attr in names and isinstance(node.value, ast.Name) and node.value.id == module:
                    found.add(f"{module}.{node.attr}")
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open" and _writes(node):
            found.add("open")
        elif isinstance(node.func, ast.Attribute) and node.func.attr in (*OF_PATHS, "open", "connect"):
            owner = ast.unparse(node.func.value)
            if node.func.attr in OF_PATHS and owner not in (*LAYERS, "os", "file_calls"):
                found.add(f".{node.func.attr}")
            elif node.func.attr == "open" and owner != "os" and _writes(node):
                found.add(".open")
            elif ast.unparse(node.func) == "sqlite3.connect" and ast.unparse(node.args[0]) != "':memory:'":
                found.add("sqlite3.connect")
    return found


def _writes(call: ast.Call) -> bool:
    """A mode is a literal here: the first one of few letters."""
    if call.args and isinstance(call.args[0], ast.Call):
        inner = ast.unparse(call.args[0].func)
        if inner in ("open_to_read", "open_or_make", "make_new_file", "make_file"):
            return False  # a descriptor that is one already
    modes = [
        node.value
        for node in (*call.args, *(word.value for word in call.keywords if word.arg == "mode"))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= 3
    ]
    return any(set(mode) & set("wax+") and set(mode) <= set("rwaxbt+") for mode in modes)


def test_nobody_else_makes_or_changes_files() -> None:
    assert len(SOURCES) > 500
    names = {path: str(path.relative_to(ROOT)) for path in SOURCES}
    found = {name: uses(path) - ELSEWHERE.get(name, set()) for path, name in names.items()}
    assert {name: made for name, made in found.items() if made} == {}


def test_no_exception_is_kept_that_is_not_needed() -> None:
    assert {name: uses(ROOT / name) & made for name, made in ELSEWHERE.items()} == ELSEWHERE


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("open(place, 'w')", {"open"}),
        ("open(file=place, mode='ab')", {"open"}),
        ("open(place, 'rb')", set()),
        ("open(make_new_file(place), 'w')", set()),
        ("place.open('r+b')", {".open"}),
        ("asyncio.to_thread(os.open, place, flags)", {"os.open"}),
        ("(directory / 'views').mkdir(exist_ok=True)", {".mkdir"}),
        ("shutil.rmtree(place)", {"shutil.rmtree"}),
        ("sqlite3.connect(place)", {"sqlite3.connect"}),
        ("sqlite3.connect(':memory:')", set()),
        ("place.write_text('x')", {".write_text"}),
        ("layer.unlink(place)", set()),
        ("text.replace('a', 'b')", set()),
        ("made = os.replace", {"os.replace"}),
        ("tempfile.mkstemp()", {"tempfile.mkstemp"}),
    ],
)
def test_the_rule_sees_what_it_is_to_see(text: str, wanted: set[str], tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    path.write_text(text, encoding="utf-8")
    assert uses(path) == wanted
