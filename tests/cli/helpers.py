"""Running commands, and their inputs."""

import subprocess
import sys

from click.testing import CliRunner

from dkae import DeepKernelizedAutoencoder
from dkae.cli import main

TINY = ["--components", "4", "--max-iter", "1", "--set", "steps_per_epoch=5", "--quiet"]
NAMES = ["length", "width, cm", "größe", "mass"]
BESIDE = ["--index", "id", "--label", "kind"]
COMMANDS = sorted(main.commands)
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


def fail(*args, code=1):
    """Run a command that must end with an exit code and one line, and return the line."""
    result = run(*args)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == code, result.stderr
    if code == 2:  # wrong usage has a line on how to get help before it
        return " ".join(result.stderr.split())
    (line,) = (line for line in result.stderr.splitlines() if not line.startswith("Warning: "))
    assert line.startswith("Error: ")
    assert "this is a bug" not in line
    return line


def make_estimator(**params):
    tiny = {"max_iter": 1, "steps_per_epoch": 5, "random_state": 0}
    return DeepKernelizedAutoencoder(4, **(tiny | params))


def run_python(code, *args):
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)
