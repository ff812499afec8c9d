"""Tables in Markdown, and the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["ROOT", "number", "table"]

ROOT = Path(__file__).resolve().parents[1]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"|{''.join(f' {cell} |'.replace('  ', ' ') for cell in r)}\n" for r in lines)


def number(value: float, digits: int) -> str:
    """Return a number with thousands and a true minus sign."""
    return f"{value:,.{digits}f}".replace("-", "−")
