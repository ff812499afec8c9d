"""A figure as SVG text: as a file of its own, or as a part of a page whose colours it takes."""

from __future__ import annotations

import html
import io
import re

import matplotlib as mpl
from matplotlib.figure import Figure

from dkae.plotting import BLUE, GREEN, INK, LINE, PURPLE, SOFT, STYLE, VERMILLION
from dkae_study.report.charts import BACKGROUND

#: What the colours of a figure become inside a page, which has a light and a dark side.
_PAGE_COLORS = {
    INK: "currentColor",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    BACKGROUND: "var(--paper)",
    BLUE: "var(--blue)",
    VERMILLION: "var(--vermillion)",
    GREEN: "var(--green)",
    PURPLE: "var(--purple)",
}

#: The font of the page, and fallbacks.
FONTS = "system-ui, 'Helvetica Neue', Arial, sans-serif"

#: L_c, N_c, K_AE: a letter with an index.
_SYMBOL = re.compile(r"\b([A-Z])_([A-Za-z]+)\b")


def standalone_svg(figure: Figure, name: str) -> str:
    """Return a figure as an SVG file, dark on white."""
    return _clean(_save(figure, name, transparent=False))


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """Return a figure as an element of an HTML page.

    Its ids start with `name`, as the page has other figures; its colours are those of the page; it
    refers to nothing outside.
    """
    text = _clean(_save(figure, name, transparent=True))
    text = text[text.index("<svg") :]
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    # An HTML parser knows the name spaces, and these look like addresses.
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = _with_own_ids(text, name)
    for color, page_color in _PAGE_COLORS.items():
        text = text.replace(color, page_color)
    # The page sets the size; the shape is in the viewBox.
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)


def _with_own_ids(text: str, name: str) -> str:
    """Put a name before all ids that something refers to; drop the others, of which some repeat."""
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda m: m[0] if m[1] in used else "", text)
    text = text.replace(' id="', f' id="{name}-')
    return re.sub(r'(href="|url\()#', rf"\g<1>#{name}-", text)


def _save(figure: Figure, name: str, *, transparent: bool) -> str:
    buffer = io.StringIO()
    # A fixed salt and no date: the same results give the same bytes.
    with mpl.rc_context(STYLE | {"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=transparent, metadata={"Date": None})
    return buffer.getvalue()


def _clean(text: str) -> str:
    """Take out the addresses of the document type and the metadata; set fonts and indices."""
    text = re.sub(r"<!DOCTYPE.*?>", "", text, flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    # Before 3.10, matplotlib writes all of a font in one: "font: 9px 'DejaVu Sans', …".
    text = re.sub(r"(font-family: |font: [^;\"]*?px )[^;\"]*", rf"\g<1>{FONTS}", text)
    return re.sub(r">([^<>]+)</text>", lambda match: f">{_with_indices(match[1])}</text>", text)


def _with_indices(text: str) -> str:
    """Set L_c with a lowered c; a zero-width space takes what follows back to the line."""
    return _SYMBOL.sub(
        r'<tspan font-style="italic">\1</tspan><tspan dy="2" font-size="75%">\2</tspan>'
        '<tspan dy="-2">\u200b</tspan>',
        text,
    )
