"""Documents name what is there: paths, names in files, links and anchors. Nothing here asks the network."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {".venv", "build", "node_modules", ".git"}
DEVELOPERS = [
    ROOT / name
    for name in (
        "docs/ARCHITECTURE.md", "docs/GLOSSARY.md", "docs/PROTOCOL.md", "docs/BOUNDARIES.md", "CONTRIBUTING.md",
    )
]  # fmt: skip
# `path`, or `path (name, Class.method)` with names that the file defines.
CITED = re.compile(r"(?<![\w./-])((?:protocol|relay|tests|deploy|docs)/[\w./-]*\w/?)(?: \(([A-Za-z_][\w., ]*)\))?")
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
DOCUMENT = re.compile(r"(?<![\w/])([\w./-]+\.md)(#[\w-]+)?")


def found(pattern: str) -> list[Path]:
    files = [path for path in ROOT.rglob(pattern) if not NOT_OURS.intersection(path.relative_to(ROOT).parts)]
    assert files
    return sorted(files)


def shown(path: object) -> str:
    return str(path.relative_to(ROOT)) if isinstance(path, Path) else ""


@cache
def names_in(path: Path) -> frozenset[str]:
    """What a module defines: `function`, `Class`, `Class.method`, `NAME`, and `Class.attribute`."""
    names: set[str] = set()

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
                collect(node.body, f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix)
            for target in [*getattr(node, "targets", []), getattr(node, "target", None)]:
                if isinstance(target, ast.Name):
                    names.add(prefix + target.id)
                elif isinstance(target, ast.Attribute) and prefix:
                    names.add(prefix + target.attr)

    collect(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return frozenset(names | {name.rpartition(".")[2] for name in names})


@cache
def anchors_in(path: Path) -> frozenset[str]:
    """The anchors of a page, as GitHub makes them of its headings, and those that are written out."""
    text = path.read_text(encoding="utf-8")
    anchors = set(re.findall(r"<a (?:id|name)=\"([\w-]+)\"", text))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE):
        words = re.sub(r"\]\([^)]*\)", "", heading).lower()
        anchor = plain = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        number = 0
        while anchor in anchors:
            number += 1
            anchor = f"{plain}-{number}"
        anchors.add(anchor)
    return frozenset(anchors)


@pytest.mark.parametrize("document", DEVELOPERS, ids=shown)
def test_what_a_document_for_developers_names_is_there(document: Path) -> None:
    wrong = []
    for cited, names in CITED.findall(document.read_text(encoding="utf-8")):
        path = ROOT / cited
        if not path.exists():
            wrong.append(cited)
        elif names:
            wrong += [f"{cited} ({name})" for name in names.split(", ") if name not in names_in(path)]
    assert not wrong


@pytest.mark.parametrize("document", found("*.md"), ids=shown)
def test_links_and_anchors_lead_somewhere(document: Path) -> None:
    wrong = []
    for link in LINK.findall(CODE.sub("", document.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        is_there = target.exists() and ROOT in (target, *target.parents)
        if not is_there or (anchor and anchor not in anchors_in(target)):
            wrong.append(link)
    assert not wrong


@pytest.mark.parametrize("package", ["protocol", "relay", "deploy", "tests"])
def test_code_cites_documents_of_this_repository_only(package: str) -> None:
    wrong = []
    for pattern in ("*.py", "*.pxd", "*.h", "*.toml"):
        for path in (ROOT / package).rglob(pattern):
            for document, anchor in DOCUMENT.findall(path.read_text(encoding="utf-8")):
                target = next(
                    (base / document for base in (ROOT, ROOT / "docs", path.parent) if (base / document).exists()), None
                )
                if target is None or (anchor and anchor[1:] not in anchors_in(target)):
                    wrong.append(f"{shown(path)}: {document}{anchor}")
    assert not wrong
