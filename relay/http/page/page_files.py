"""The page's files, read once; they come from the relay itself, and load nothing from elsewhere."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The browser takes scripts, styles and answers from the relay only, and no text inside a name is executed."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page. mark: changes with the text (ETag)."""

    content: bytes
    content_type: str
    mark: str


def page_files() -> Mapping[str, PageFile]:
    """Return the files by path: `/` and the names below it."""
    found: dict[str, PageFile] = {}
    for one in (files(__package__) / "assets").iterdir():
        name, _, ending = one.name.rpartition(".")
        if ending in _TYPES and name:
            content = one.read_bytes()
            mark = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[f"/{one.name}"] = PageFile(content, _TYPES[ending], mark)
    return {"/": found.pop("/index.html"), **found}
