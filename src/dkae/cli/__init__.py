"""The command line: parses, dispatches, and turns errors into one clear line.

Only the commands import torch and scikit-learn, so that ``dkae --help`` is fast. Another
distribution adds a command by an entry point of the group ``dkae.commands``.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from dkae import __version__
from dkae._support.threads import calm_spinning
from dkae.cli.commands import denoise, info, interpolate, inverse, score, transform
from dkae.cli.errors import Interrupted, clear_errors
from dkae.cli.fit import fit
from dkae.cli.options import check_output, example, force_option, refuse_input

__all__ = ["Interrupted", "check_output", "example", "force_option", "main", "refuse_input"]

#: The entry points of commands of other distributions.
ENTRY_POINTS = "dkae.commands"
#: Commands of the distribution dkae-study, which may not be installed.
STUDY_COMMANDS = ("demo", "report", "reproduce")


class Commands(click.Group):
    """Our own commands, and those of other distributions, loaded on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *_added()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        if cmd_name in (added := _added()):
            command: click.Command = added[cmd_name].load()
            return command
        if cmd_name in STUDY_COMMANDS:
            raise click.ClickException(
                f"`dkae {cmd_name}` belongs to the study of the paper, a separate distribution: "
                "pip install dkae-study"
            )
        return None

    def invoke(self, ctx: click.Context) -> Any:
        calm_spinning()  # before a command imports torch
        with clear_errors():  # here, so that it holds for commands of other distributions
            return super().invoke(ctx)


def _added() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example(
        "dkae fit mnist20k:train -o model.safetensors",
        "dkae transform model.safetensors mnist20k:test -o codes.npy",
        "dkae inverse model.safetensors codes.npy -o images.npy",
    ),
)
@click.version_option(__version__, prog_name="dkae")
def main() -> None:
    """Explicit, invertible feature maps for any kernel: deep kernelized autoencoders."""


for _command in (fit, transform, inverse, denoise, interpolate, score, info):
    main.add_command(_command)
