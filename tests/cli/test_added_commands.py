"""Commands that other distributions add."""

from importlib.metadata import EntryPoint

import click
import pytest

from dkae import cli
from tests.cli.helpers import fail, run, succeed


@click.command()
def hello() -> None:
    """Say hello."""
    click.echo("hello")


@pytest.fixture
def added(monkeypatch):
    """Return a function that sets which entry points there are."""

    def set_up(**values):
        points = [EntryPoint(name, value, cli.ENTRY_POINTS) for name, value in values.items()]
        monkeypatch.setattr(cli, "entry_points", lambda group: points)

    return set_up


def test_a_command_is_added_by_an_entry_point(added):
    added(hello="tests.cli.test_added_commands:hello")
    assert "hello" in succeed("--help").stdout
    assert succeed("hello").stdout == "hello\n"


def test_our_own_commands_cannot_be_replaced(added):
    added(score="tests.cli.test_added_commands:hello")
    assert "alignment" in succeed("score", "--help").stdout


@pytest.mark.parametrize("command", ["demo", "reproduce", "report"])
def test_without_the_study_its_commands_say_what_to_install(added, command):
    added()
    assert "pip install dkae-study" in fail(command)
    assert f"  {command} " not in succeed("--help").stdout


def test_an_unknown_command_is_still_unknown(added):
    added()
    assert run("nonsense").exit_code == 2
