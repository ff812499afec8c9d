"""Running commands, and what they are run on."""

import subprocess
import sys

from click.testing import CliRunner

from dkae import DeepKernelizedAutoencoder
from dkae.cli import main

TINY = [
    "--hidden",
    "16",
    "--components",
    "4",
    "--max-iter",
    "1",
    "--steps-per-epoch",
    "5",
    "--quiet",
]
COMMANDS = sorted(main.commands)
ENDINGS = [".npy", ".npz", ".csv"]
SOURCES = ["rows.npy", "rows.npz", "two.npz:rows", "header.csv", "bare.csv"]
EXAMPLES = [
    line.strip()
    for command in [main, *main.commands.values()]
    for line in command.epilog.splitlines()
    if line.strip().startswith("dkae ")
]


def run(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def succeed(*args):
    result = run(*args)
    assert result.exit_code == 0, result.output or repr(result.exception)
    return result


def fail(*args):
    """Run a command that must end with exit code 1 and one line; return that line."""
    result = run(*args)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1
    line = result.stderr.removesuffix("\n")
    assert line.startswith("Error: ")
    assert "\n" not in line
    assert "this is a bug" not in line
    return line


def refuse(*args):
    """Run a command that must be refused as wrong usage; return what it says."""
    result = run(*args)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 2
    return result.stderr


def make_estimator(**params):
    tiny = {"hidden_layer_sizes": (16,), "max_iter": 1, "steps_per_epoch": 5, "random_state": 0}
    return DeepKernelizedAutoencoder(4, **(tiny | params))


def run_python(code, *args):
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)
