"""Relative links of README, CONTRIBUTING and docs lead to files, and to headings in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="only in the repository")


def links_of(path: Path) -> list[str]:
    """Return the targets of links and images that stand outside of code."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if not target.startswith(("http", "mailto:"))]


def anchors_of(path: Path) -> set[str]:
    """Return what GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_relative_links_lead_somewhere(page):
    for link in links_of(page):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


def test_pages_have_links():
    assert len(links_of(ROOT / "README.md")) > 5
