"""The command line: parses, dispatches, and turns errors into one clear line.

torch and scikit-learn are imported inside the commands only, so that ``dkae --help`` is fast.
"""

from __future__ import annotations

import click

from dkae import __version__
from dkae.cli import models, study
from dkae.cli.options import example

__all__ = ["main"]


@click.group(
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


for _command in (*models.COMMANDS, *study.COMMANDS):
    main.add_command(_command)
