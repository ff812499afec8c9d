"""From a template to a page: one environment, and how plain words are set in HTML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

#: In the last lines of each page of the study since the first version.
_MARK = "Made from the result files alone"
_LAST_BYTES = 1000


def is_own_page(path: Path) -> bool:
    """Return whether a file is a page of a study, which can be made again."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LAST_BYTES))
        end = file.read(_LAST_BYTES).decode("utf-8", errors="replace")
    return _MARK in end and end.rstrip().endswith("</html>")


def render(template: str, **context: Any) -> str:
    """Return the page that a template of this package makes of the context."""
    return _ENVIRONMENT.get_template(template).render(**context)


def set_prose(text: object) -> Markup:
    """Return text with L_c as a letter with an index and `code` as code; all else is escaped."""
    words = str(escape(text))
    words = re.sub(r"`([^`]+)`", r"<code>\1</code>", words)
    words = re.sub(r"\b([A-Z])_([A-Za-z]+)\b", r"<i>\1</i><sub>\2</sub>", words)
    return Markup(words)


def _make_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dkae_study.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["prose"] = set_prose
    return environment


_ENVIRONMENT = _make_environment()
