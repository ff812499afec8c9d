"""Training in several processes, as torchrun starts them, against training in one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dkae import load
from dkae.alignment import MEASURES
from tests.training import ranks

ROOT = Path(__file__).parents[2]
#: Relative gaps between gradients that are round-off.
ROUND_OFF = {"torch.float32": 1e-6, "torch.float64": 1e-14}
#: The jobs of two processes that are not killed, in one launch.
JOBS = "messages,fits,streams,gradients,differences,failures"


def start(command, seconds=60, **variables):
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
        "DKAE_TIMEOUT": str(seconds),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    return subprocess.Popen(
        [sys.executable, *map(str, command)], env=environment | variables, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def torchrun(jobs, folder, *options, n=2, **variables):
    """Start some jobs of `ranks` in several processes."""
    run = ["-m", "torch.distributed.run", "--nproc-per-node", n, *(options or ["--standalone"])]
    return start([*run, ranks.__file__, jobs, folder], **variables)


def finish(process, seconds=300):
    said, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0, said[-3000:]
    return said


def found_by(jobs, folder, n=2):
    """Return what each process has found."""
    return [json.loads((folder / f"{jobs}-{rank}.json").read_text()) for rank in range(n)]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    finish(torchrun(JOBS, folder))
    return found_by(JOBS, folder)


@pytest.fixture(scope="module")
def alone():
    return {"fits": ranks.fits(), "streams": ranks.streams()}


# --- one model, however many processes -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ranks.FITS)
def test_two_processes_end_where_one_does(two, alone, name):
    first, second = (found["fits"][name] for found in two)
    assert first == second  # to the bit
    expected = alone["fits"][name]
    size = np.abs(expected["weights"]).max()
    np.testing.assert_allclose(first["weights"], expected["weights"], rtol=0, atol=1e-4 * size)
    assert first["scale"] == pytest.approx(expected["scale"], rel=1e-4)
    for ours, theirs in zip(first["history"], expected["history"], strict=True):
        assert ours["phase"] == theirs["phase"]
        for key in theirs.keys() - {"phase"}:
            assert ours[key] == pytest.approx(theirs[key], rel=1e-4)


@pytest.mark.slow
def test_the_gradient_is_that_of_one_process(two):
    for gaps in (found["gradients"] for found in two):
        assert len(gaps) == 2 * len(MEASURES)
        for name, gap in gaps.items():
            assert gap <= ROUND_OFF[name.split()[1]], name


@pytest.mark.slow
def test_passes_and_custom_batches(two, alone):
    assert two[0]["streams"] == two[1]["streams"]
    for ours, theirs in zip(two[0]["streams"], alone["streams"], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


@pytest.mark.slow
def test_messages_arrive_as_they_were_sent(two):
    found = two[0]["messages"]
    assert found == two[1]["messages"]
    assert found["values"] == [{"rank": r, "text": "é" * r, "none": None} for r in (0, 1)]
    assert (found["first"], found["highest"], found["first arrays"]) == ([0, "ß"], 5, [0])
    for rank, arrays in enumerate(found["arrays"]):
        assert arrays["numbers"] == ["<f8", list(range(3 + rank))]
        assert arrays["none"] == ["<f4", []]
        assert arrays["text"][1] == ["a", "bcd"[rank:]]
        assert arrays["0-d"] == ["<i8", rank]
        assert arrays["flags"] == ["|b1", (ranks.X[:2] > rank).tolist()]
        assert arrays["turned"] == ["<f4", ranks.X[:5, : 3 + rank].tolist()]


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("case", ranks.DIFFERENCES)
def test_all_ranks_name_their_difference(two, case):
    _, name = ranks.DIFFERENCES[case]
    expected = f"ValueError: rank 1 differs from rank 0 in {name}: start all processes"
    for found in two:
        assert found["differences"][case].startswith(expected)


@pytest.mark.slow
@pytest.mark.parametrize("case", ranks.FAILURES)
def test_all_ranks_name_the_rank_that_fails(two, case):
    _, failing, error = ranks.FAILURES[case]
    for rank, found in enumerate(two):
        own = failing in (rank, None)  # or all fail alike
        expected = error if own else f"LostProcessError: rank {failing} failed ({error}"
        assert found["failures"][case].startswith(expected)


@pytest.mark.slow
def test_a_process_that_is_killed_is_started_again_and_all_go_on(tmp_path):
    finish(torchrun("killed", tmp_path, "--standalone", "--max-restarts", "1"))
    assert found_by("killed", tmp_path) == [{"killed": True}] * 2
    # The model that was written can be trained further, by several and by one.
    finish(torchrun("loading", tmp_path))
    ours, theirs = (found["loading"] for found in found_by("loading", tmp_path))
    assert ours == theirs
    np.testing.assert_allclose(ours, ranks.loading(tmp_path), atol=2e-5)


@pytest.mark.slow
def test_two_hosts_meet_at_an_address(tmp_path, alone):
    """Two of torchrun's agents, each at an address of its own, with a process each."""
    port = free_port()
    agents = [
        torchrun(
            "hosts", tmp_path, "--nnodes", "2", "--node-rank", i, "--rdzv-backend", "c10d",
            "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "test",
            "--local-addr", f"127.0.0.{1 + i}", n=1,
        )
        for i in range(2)
    ]  # fmt: skip
    for agent in agents:
        finish(agent, 200)
    first, second = (found["hosts"] for found in found_by("hosts", tmp_path))
    assert first == second
    assert first["world"] == 2
    np.testing.assert_allclose(first["weights"], alone["fits"]["stack"]["weights"], atol=1e-5)


# --- the environment ------------------------------------------------------------------------------


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def one_of_two(rank, port, folder, seconds, job="appearing"):
    """Start one of two processes without torchrun."""
    return start(
        [ranks.__file__, job, folder], seconds, RANK=str(rank), WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
    )  # fmt: skip


@pytest.mark.slow
def test_without_torchrun_two_meet_at_one_address_only_and_miss_each_other(tmp_path):
    """The second is killed, and not started again."""
    port, jobs = free_port(), "appearing,second gone"
    first = one_of_two(0, port, tmp_path, 60, jobs)
    wait_for("127.0.0.1", port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port))  # an address of all interfaces
    second = one_of_two(1, port, tmp_path, 60, jobs)
    finish(first)
    second.communicate()
    assert second.returncode == -signal.SIGKILL
    found = json.loads((tmp_path / f"{jobs}-0.json").read_text())
    assert found["appearing"] == [0, 1]
    message = "rank 1 was killed, is cut off, or did not answer in time; this process, rank 0"
    assert found["second gone"][""].startswith(f"LostProcessError: {message}")


@pytest.mark.slow
def test_the_first_is_killed_and_not_started_again(tmp_path):
    port = free_port()
    both = [one_of_two(rank, port, tmp_path, 60, "first gone") for rank in (0, 1)]
    finish(both[1])
    both[0].communicate()
    (said,) = json.loads((tmp_path / "first gone-1.json").read_text()).values()
    message = "rank 0, which keeps the list of processes, is gone; this process, rank 1"
    assert said[""].startswith(f"LostProcessError: {message}")


def wait_for(address, port):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return socket.create_connection((address, port)).close()
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise TimeoutError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "message"),
    [
        (0, "LostProcessError: rank 1 did not appear within 3 seconds"),
        (1, "LostProcessError: rank 1 did not reach the others by MASTER_ADDR=127.0.0.1, MASTER_P"),
    ],
)
def test_a_process_that_never_starts(tmp_path, rank, message):
    process = one_of_two(rank, free_port(), tmp_path, 3)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert message in said


# --- the command line -----------------------------------------------------------------------------


def dkae_in_two(*arguments):
    run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "dkae"]
    process = start([*run, *arguments], PYTHONWARNINGS="default")
    said, _ = process.communicate(timeout=200)
    return process.returncode, said


@pytest.mark.slow
def test_the_command_line_in_two_processes(tmp_path):
    out, state = tmp_path / "model.safetensors", tmp_path / "state"
    options = ["--components", "4", "--set", "decoder_max_iter=1", "--set", "steps_per_epoch=5"]
    code, said = dkae_in_two("fit", "digits", "-o", out, "--checkpoint", state, *options)
    assert code == 0, said[-2000:]
    assert said.count("1797 rows -> 4 components") == 1  # one speaks for all
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    assert load(out).transform(np.zeros((2, 64))).shape == (2, 4)
    code, said = dkae_in_two(
        "fit", "digits", "-o", tmp_path / "b.safetensors", "--batch-size", "31"
    )
    assert code != 0
    for rank in (0, 1):
        assert f"Error: rank {rank}: batch_size=31 makes batches of 31 rows, which" in said
