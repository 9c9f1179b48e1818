"""A report as a browser sees it, read strictly."""

import re
from html.parser import HTMLParser
from typing import Final

_VOID: Final = frozenset({"meta", "br", "hr", "img", "link", "input", "col"})
# Places of the page, and pages of the same directory of audits.
_LED_TO: Final = re.compile(r"#[a-z0-9_-]+|[a-z]+/report\.html|\.\./index\.html")


class CheckedPage(HTMLParser):
    """Reads a page strictly: every element is closed in order, nothing is loaded, nothing can run."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.leads_to: set[str] = set()
        assert text.startswith("<!DOCTYPE html>")
        assert not re.search(r"(src|href|url\()\s*=?\s*[\"']?\s*(https?:)?//", text, re.IGNORECASE)
        self.feed(text)
        self.close()
        assert not self.open
        assert self.leads_to <= self.ids
        assert not self.tags & {"script", "link", "iframe", "img", "object", "embed", "base", "form"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "xlink:href")]
        for name, value in attrs:
            if name == "href":
                assert tag == "a" and _LED_TO.fullmatch(value or ""), value
            if name == "id":
                assert value not in self.ids
                self.ids.add(value or "")
        self.leads_to |= {
            value.partition("#")[2] for name, value in attrs if name == "href" and value and value[0] == "#"
        }
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert tag in ("rect", "path", "text")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        """What a reader sees."""
        return " ".join(self.texts)
