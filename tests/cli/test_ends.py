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
        process.send_signal(signal.SIGINT)
        try:
            _, rest = process.communicate(timeout=60)
        finally:
            process.kill()  # else it would be waited for
    assert process.returncode == 130, said + rest
    assert rest.splitlines()[-1].startswith("Error: interrupted, and no model was written")
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_output_that_cannot_be_written_is_at_most_one_line(folder):
    """Both in one process: torch is imported once."""
    code = f"""{START}
import os
import dkae.persistence
for target in ("pipe", "/dev/full"):
    if target == "pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(target, os.O_WRONLY)
    if os.fork() == 0:
        os.dup2(writer, 1)
        main(["info", "model.safetensors"])
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.stdout == "1\n1\n"
    assert result.stderr == "Error: [Errno 28] No space left on device\n"


def test_what_was_written_stays_if_nobody_reads_what_is_said(folder, tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise BrokenPipeError

    monkeypatch.setattr("dkae.cli.options.click.echo", broken)
    out = tmp_path / "codes.npy"
    run("transform", folder / "model.safetensors", folder / "rows.npy", "-o", out)
    assert np.load(out).shape == (40, 4)
