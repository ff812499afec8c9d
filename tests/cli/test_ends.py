"""Commands that end early: Ctrl-C, a closed pipe, a full disk."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder
from tests.cli.helpers import TINY, run

#: Starts the command as a shell does: with the usual reaction to Ctrl-C.
START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from dkae.cli import main
"""


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ([], "with --checkpoint FILE the next call can go on from here"),
        (["--checkpoint", "state"], "the same command goes on from state"),
    ],
    ids=["alone", "in the first step"],
)
def test_ctrl_c_says_that_no_model_was_written(options, remedy, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dkae.training.Trainer.train_step", interrupt)
    result = run("fit", folder / "rows.npy", "-o", "m.safetensors", *TINY, *options)
    assert result.exit_code == 130
    assert result.stderr == f"Error: interrupted, and no model was written; {remedy}\n"
    assert [path.name for path in tmp_path.iterdir()] == options[1:]


@pytest.mark.parametrize("command", ["transform", "score"])
def test_ctrl_c_of_other_commands(command, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(DeepKernelizedAutoencoder, "transform", interrupt)
    out = ["-o", tmp_path / "codes.npy"] if command == "transform" else []
    result = run(command, folder / "model.safetensors", folder / "rows.npy", *out)
    assert (result.exit_code, result.stderr) == (130, "Error: interrupted\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_in_a_process_of_its_own(folder, tmp_path):
    options = [*TINY[:-1], "--max-iter", "1000000"]  # not quiet
    args = ["fit", "rows.npy", "-o", str(tmp_path / "m.safetensors"), *options]
    command = [sys.executable, "-c", f"{START}main({args})"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.readline()
        assert "fine-tuning" in said
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("Error: interrupted, and no model was written")
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def score(folder, stdout):
    code = START + "main(['score', 'model.safetensors', 'rows.npy'])"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_pipe_that_nobody_reads_is_no_traceback(folder):
    reader, writer = os.pipe()
    os.close(reader)
    result = score(folder, writer)
    os.close(writer)
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_for_what_is_printed_is_one_line(folder):
    with open("/dev/full", "w") as full:  # noqa: PTH123  # a device
        result = score(folder, full)
    assert result.returncode == 1
    assert result.stderr == "Error: [Errno 28] No space left on device\n"


def test_what_was_written_stays_if_nobody_reads_what_is_said(folder, tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise BrokenPipeError

    monkeypatch.setattr("dkae.cli.streams.click.echo", broken)
    out = tmp_path / "codes.npy"
    run("transform", folder / "model.safetensors", folder / "rows.npy", "-o", out)
    assert np.load(out).shape == (40, 4)
