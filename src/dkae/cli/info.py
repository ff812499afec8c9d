"""`dkae info`: what is in a model file, without its weights."""

from collections.abc import Iterator
from typing import Any

import click

from dkae.cli.errors import one_line
from dkae.cli.options import example

#: Longer values are cut.
WIDTH = 60


@click.command(epilog=example("dkae info model.safetensors"))
@click.argument("model")
def info(model: str) -> None:
    """Show what the file MODEL holds, without loading it; nothing in it is executed."""
    from dkae.persistence import info as read_info

    found = read_info(model)
    kind, version, form = (one_line(found[name]) for name in ("kind", "dkae", "format"))
    click.echo(f"{one_line(model)}: {kind}, written by dkae {version} ({form})")
    n_numbers, n_bytes = _sizes(found["tensors"])
    click.echo(f"  tensors    {len(found['tensors'])}, of {n_numbers:,} numbers, {n_bytes:,} bytes")
    click.echo(f"  sha256     {found['checksum'] or 'none: files of 0.1 and 0.2 have no checksum'}")
    for line in _lines(found["state"]):
        click.echo(f"  {line}")


def _sizes(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> tuple[int, int]:
    """Return how many numbers there are, and how many bytes they take."""
    import math

    counts = [(dtype, math.prod(shape)) for dtype, shape in tensors.values()]
    width = {"BOOL": 1, "BF16": 2} | {f"{kind}{8 * n}": n for kind in "FIU" for n in (1, 2, 4, 8)}
    return sum(n for _, n in counts), sum(n * width[dtype] for dtype, n in counts)


def _lines(state: Any) -> Iterator[str]:
    """Yield the parameters and what was learnt, of the model and of what it is made of."""
    objects = list(_objects(state))
    for kind, content in objects:
        params = _plain(content.get("params"))
        learnt = _plain(content.get("learnt"))
        if params or learnt:
            yield one_line(kind)
        for name, value in sorted((params | learnt).items()):
            yield f"  {one_line(name):<24} {value}"


def _objects(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the kind and the state of every object, from the outside in."""
    content = value.get("object") if isinstance(value, dict) else None
    if isinstance(content, list) and len(content) == 2 and isinstance(content[1], dict):
        yield str(content[0]), content[1]
        value = content[1]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _objects(part)


def _plain(encoded: Any) -> dict[str, str]:
    """Return the values of a part of a state that can be shown on a line."""
    values = encoded.get("dict") if isinstance(encoded, dict) else None
    if not isinstance(values, dict):
        return {}
    shown = {name: _shown(value) for name, value in values.items()}
    return {name: text for name, text in shown.items() if text is not None}


def _shown(value: Any) -> str | None:
    if isinstance(value, dict) and "tuple" in value:
        value = value["tuple"]
    if isinstance(value, dict) or (isinstance(value, list) and any(map(_is_nested, value))):
        return None
    text = one_line(value if isinstance(value, str) else repr(value))
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)
