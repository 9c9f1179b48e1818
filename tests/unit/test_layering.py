"""The plan of the house, and who may import what.

protocol/ does no I/O, relay/ hides pyspark in one place, downstream reads the archive only. Folders are small, form a
tree without circles, and no name stands twice: so a stranger finds a thing by its name, in two looks.
"""

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.columns.codes import column_codes
from protocol.kernel import codes

ROOT = Path(__file__).resolve().parents[2]
IO_MODULES = {
    "aiomysql", "asyncio", "concurrent", "fcntl", "io", "logging", "mmap", "multiprocessing", "os", "pathlib",
    "pymysql", "relay", "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "structlog", "subprocess",
    "sys", "tempfile", "threading", "time", "uvloop",
}  # fmt: skip
IO_CALLS = {"open", "print", "input"}


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """What was parsed goes with the module: a process that holds millions of objects collects garbage slowly."""
    yield
    for kept in (tree, nodes, imported, imports_of):
        kept.cache_clear()


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"no source in {package}/"
    return found


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Of a file, all of them: a dozen rules look at each."""
    return tuple(ast.walk(tree(path)))


@functools.cache
def imported(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            found.add(node.module or "")
    return frozenset(found)


@pytest.mark.parametrize("path", sources("protocol"), ids=lambda path: str(path.relative_to(ROOT)))
def test_protocol_does_no_input_or_output(path: Path) -> None:
    wrong = {name for name in imported(path) if name.partition(".")[0] in IO_MODULES}
    assert not wrong
    calls = {node.func.id for node in nodes(path) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not calls & IO_CALLS


@pytest.mark.parametrize("path", sources("relay"), ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_data_source_and_the_audits_know_spark(path: Path) -> None:
    names = {name.partition(".")[0] for name in imported(path)}
    if not {"spark", "audit"}.intersection(path.parts):
        assert "pyspark" not in names
    if not {"binlog_tables", "spark", "audit", "feed"}.intersection(path.parts):
        assert "pyarrow" not in names


@pytest.mark.parametrize("path", sources("relay"), ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_feed_knows_lakes(path: Path) -> None:
    if "feed" not in path.parts:
        assert not {name.partition(".")[0] for name in imported(path)} & {"deltalake", "pyiceberg", "duckdb"}


@pytest.mark.parametrize("path", sources("relay/downstream"), ids=lambda path: str(path.relative_to(ROOT)))
def test_downstream_knows_nothing_of_upstream(path: Path) -> None:
    assert not {name for name in imported(path) if name.startswith("relay.upstream")}


@pytest.mark.parametrize("path", sources("relay/upstream"), ids=lambda path: str(path.relative_to(ROOT)))
def test_upstream_knows_nothing_of_downstream(path: Path) -> None:
    assert not {name for name in imported(path) if name.startswith("relay.downstream")}


@pytest.mark.parametrize("path", sources("relay/binlog_file"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_reader_of_binlogs_knows_nobody_who_reads_them(path: Path) -> None:
    names = {name for name in imported(path) if name.startswith("relay.")}
    assert {name for name in names if not name.startswith("relay.binlog_file.")} == set()


def test_events_go_through_the_kernel_in_one_place_for_files_one_for_streams_and_one_for_views() -> None:
    """Six loops once did this, and what was mended in one of them was not in the others."""
    found = {
        str(path.relative_to(ROOT))
        for path in sources("relay")
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "feed"
    }
    assert found == {
        "relay/binlog_file/event_reader.py",
        "relay/upstream/stream/intake.py",
        "relay/view/file_maker.py",
    }


COMPILED_TEXTS = [path for path in sources("protocol/kernel") + sources("protocol/columns") if "codes" not in path.stem]
CODES = {name: value for module in (codes, column_codes) for name, value in vars(module).items() if name.isupper()}
"""The numbers that the compiled modules share."""


def test_types_stand_in_the_text_and_nowhere_beside_it() -> None:
    # mypy reads a stub in place of the text: what is in the functions would then be checked by nobody.
    assert list((ROOT / "protocol").rglob("*.pyi")) == []


def test_a_number_of_the_kernel_is_defined_once() -> None:
    # A second definition is right until one of the two is changed.
    found = []
    for path in sources("protocol") + sources("relay"):
        if "codes" in path.stem:
            continue
        for node in nodes(path):
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
                name = ast.unparse(node.target).lstrip("_")
                if name in CODES and CODES[name] == node.value.value:
                    found.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


@pytest.mark.parametrize("path", COMPILED_TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_compiled_modules_call_event_types_and_places_by_their_names(path: Path) -> None:
    # `t == 40` has to be looked up by everyone who reads it, and nobody finds it who looks for Transaction_payload.
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            types = any(isinstance(side, ast.Name) and side.id in ("t", "event_type") for side in sides)
            if types and any(isinstance(part, ast.Constant) for side in sides for part in ast.walk(side)):
                found.append(f"{node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            if isinstance(node.value, ast.Attribute) and node.value.attr in ("kind", "least", "post_length", "role"):
                found.append(f"{node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Constant) and type(node.value) is int and node.value == 19:  # the size of a header
            found.append(f"{node.lineno}: 19")
        elif isinstance(node, ast.Attribute) and node.attr == "declare":  # a variable of C, where a constant was meant
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    assert found == []


def test_where_things_stand_in_a_binlog_is_written_once() -> None:
    """The header's struct, the magic and the offset of the first event stood in up to thirteen places."""
    wanted = {"HEADER_SIZE", "CHECKSUM_SIZE", "FIRST_EVENT", "MAGIC", "ENCRYPTED_MAGIC"}
    layout = ROOT / "protocol" / "binlog" / "layout.py"
    found = []
    for path in sources("protocol") + sources("relay"):
        if path in (layout, ROOT / "protocol" / "kernel" / "codes.py"):
            continue
        for node in nodes(path):
            if isinstance(node, ast.Constant) and node.value in ("<IBIIIH", b"\xfebin", b"\xfdbin"):
                found.append(f"{path}:{node.lineno}: {node.value!r}")
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id.lstrip("_")
                if name in wanted and path.name != "semisync.py":
                    found.append(f"{path}:{node.lineno}: {name}")
    assert found == []


# --- folders ---------------------------------------------------------------------------------------------------------

PACKAGES = ("protocol", "relay")
MOST_MODULES = 16
MANY_BY_DESIGN = {"protocol/binlog"}
"""One event a file."""


@functools.cache
def modules() -> dict[str, Path]:
    """Dotted name -> file, of all modules and packages."""
    found = {}
    for package in PACKAGES:
        for path in sources(package):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def folder(path: Path) -> str:
    return str(path.parent.relative_to(ROOT))


def part(path: Path) -> str:
    """The part of the house, like relay/view."""
    return "/".join(path.relative_to(ROOT).parts[:2])


def in_folders() -> dict[str, list[str]]:
    """Folder -> its modules."""
    found = defaultdict(list)
    for path in modules().values():
        if path.name != "__init__.py":
            found[folder(path)].append(path.stem)
    return found


@functools.cache
def imports_of(path: Path) -> frozenset[Path]:
    """The files of the two packages that this one imports, also inside functions and for types only."""
    found: set[Path] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module or ""]
        else:
            continue
        if isinstance(node, ast.ImportFrom):
            of_modules = [name for name in names[:-1] if name in modules()]
            names = of_modules or names[-1:]
        found |= {modules()[name] for name in names if name in modules()}
    return frozenset(found)


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Groups of nodes that can be reached from each other (Tarjan's algorithm, without recursion over the stack's limit)."""
    reached: dict[str, set[str]] = {}
    for start in arrows:
        seen, left = set(), [start]
        while left:
            for following in arrows.get(left.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    left.append(following)
        reached[start] = seen
    return sorted(
        sorted(other for other in arrows if other in reached[node] and node in reached[other])
        for node in arrows
        if node in reached[node]
    )


@pytest.mark.parametrize("name", sorted(in_folders()))
def test_no_folder_has_more_modules_than_a_reader_can_hold_in_mind(name: str) -> None:
    if name not in MANY_BY_DESIGN:
        assert len(in_folders()[name]) <= MOST_MODULES


@pytest.mark.parametrize("package", [path for name, path in sorted(modules().items()) if path.name == "__init__.py"])
def test_every_folder_says_in_one_sentence_what_it_is(package: Path) -> None:
    assert ast.get_docstring(tree(package)), f"{folder(package)}/__init__.py says nothing"


def test_the_folders_form_a_tree_without_circles() -> None:
    """A folder in a circle can only be read together with the whole circle."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for path in modules().values():
        arrows[folder(path)] |= {folder(other) for other in imports_of(path)} - {folder(path)}
    assert circles(arrows) == []


def test_the_parts_of_the_relay_form_a_tree_without_circles() -> None:
    """Two parts that import each other are one: no file of the lower one may know the upper one."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for path in sources("relay"):
        arrows[part(path)] |= {part(to) for to in imports_of(path)} - {part(path)}
    assert circles(arrows) == []


def test_no_two_files_import_each_other() -> None:
    arrows = {
        str(path.relative_to(ROOT)): {str(to.relative_to(ROOT)) for to in imports_of(path)}
        for path in modules().values()
    }
    assert circles(arrows) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_name_stands_twice(package: str) -> None:
    """Who says `session.py` must not have to say which."""
    found = defaultdict(list)
    for path in modules().values():
        if path.name != "__init__.py" and path.relative_to(ROOT).parts[0] == package:
            found[path.stem].append(folder(path))
    assert {name: folders for name, folders in found.items() if len(folders) > 1} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_class_name_stands_twice(package: str) -> None:
    """A class is known by its name alone, in a log, a review or a question."""
    found = defaultdict(list)
    for path in modules().values():
        if path.relative_to(ROOT).parts[0] == package:
            for node in tree(path).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


# --- signatures ------------------------------------------------------------------------------------------------------

MOST_PARAMETERS = 8
COMMANDS = ROOT / "relay" / "cli"
"""A function there has a parameter for each option of the command line."""


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_takes_more_parameters_than_a_caller_can_tell_apart(package: str) -> None:
    """What belongs together is a record with a name of its own."""
    wide = {}
    for path in sources(package):
        for node in nodes(path) if path.parent != COMMANDS else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                count = len(names) - (names[:1] in (["self"], ["cls"]))
                if count > MOST_PARAMETERS:
                    wide[f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"] = count
    assert wide == {}
