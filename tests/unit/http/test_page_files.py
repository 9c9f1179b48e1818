"""The page's files: what they ask for is there, and the ledger's meanings are those of docs/ERRORS.md."""

import json
import re
from pathlib import Path

from relay.http.page.ledger_meanings import meanings
from relay.http.page.page_files import page_files
from tests.support.told_names import ledger_kinds

ROOT = Path(__file__).resolve().parents[3]


def test_every_file_that_the_page_names_is_served() -> None:
    files = page_files()
    named = set()
    for file in files.values():
        text = file.content.decode()
        named |= set(re.findall(r'(?:href|src)="([^"#]+)"', text)) | set(re.findall(r'from "\./([^"]+)"', text))
        named |= set(re.findall(r'fetch\("([^"]+)"\)', text))
    assert named and {f"/{name}" for name in named} == set(files) - {"/"}


def test_the_page_names_nobody_else() -> None:
    for path, file in page_files().items():
        assert set(re.findall(r"https?://[^\s\"']+", file.content.decode())) <= {"http://www.w3.org/2000/svg"}, path


def test_no_style_or_script_stands_in_the_text_of_the_page() -> None:
    # The browser would not take it: the policy names files only.
    text = page_files()["/"].content.decode()
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src=)", text)


def test_no_script_makes_markup_of_what_it_is_given() -> None:
    for path, file in page_files().items():
        text = file.content.decode()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|javascript:", text
        ), path


def test_the_meanings_of_ledger_rows_are_those_of_the_page_of_errors() -> None:
    page = (ROOT / "docs" / "ERRORS.md").read_text(encoding="utf-8")
    served = json.loads(page_files()["/ledger_meanings.json"].content)
    command = "python -m relay.http.page.ledger_meanings docs/ERRORS.md > relay/http/page/assets/ledger_meanings.json"
    assert served == meanings(page), command
    assert ledger_kinds() <= set(served)
    assert all(served[kind]["means"] and served[kind]["runbook"].endswith(f"#ledger-{kind}") for kind in ledger_kinds())
