"""`dkae info`: the contents of a model file, without its weights."""

from __future__ import annotations

import math
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
    shapes = [shape for _, shape in found["tensors"].values()]
    click.echo(f"{one_line(model)}: {kind}, written by dkae {version} ({form})")
    click.echo(f"  tensors    {len(shapes)}, of {sum(map(math.prod, shapes)):,} numbers")
    click.echo(f"  sha256     {found['checksum']}")
    for kind, fields in _objects(found["state"]):
        click.echo(f"  {one_line(kind)}")
        for name, value in sorted(fields.items()):
            if (text := _shown(value)) is not None:
                click.echo(f"    {one_line(name):<24} {text}")


def _objects(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the kind and the fields of every object, from the outside in."""
    content = value.get("object") if isinstance(value, dict) else None
    if isinstance(content, list) and len(content) == 2 and isinstance(content[1], dict):
        yield str(content[0]), content[1]
        value = content[1]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _objects(part)


def _shown(value: Any) -> str | None:
    """Return a value on a line; None if it is nested."""
    value = value.get("tuple", value) if isinstance(value, dict) else value
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, dict | list) for part in parts):
        return None
    text = one_line(value if isinstance(value, str) else repr(value))
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
