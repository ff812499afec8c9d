"""Training in several processes, as torchrun starts them, against training in one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder, load
from dkae._support import processes
from dkae._support.processes import ALONE, in_shares, is_distributed, present, speaks
from dkae.alignment import MEASURES
from tests.training import ranks

ROOT = Path(__file__).parents[2]
#: Relative gaps between gradients that are round-off.
ROUND_OFF = {"torch.float32": 1e-6, "torch.float64": 1e-14}


def torchrun(job, folder, *options, n=2, seconds=60, check=True, address=None):
    """Run a job of `ranks` in several processes, and return what each of them has found."""
    where = ["--standalone"] if address is None else address
    command = [
        sys.executable, "-W", "ignore", "-m", "torch.distributed.run", *where,
        "--nproc-per-node", str(n), *options, ranks.__file__, job, str(folder),
    ]  # fmt: skip
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
        "DKAE_TIMEOUT": str(seconds),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if not check:
        return process
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said[-3000:]
    return [json.loads((folder / f"{job}-{rank}.json").read_text()) for rank in range(n)]


# --- one model, however many processes -----------------------------------------------------------


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    return torchrun("fits", tmp_path_factory.mktemp("fits"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ranks.FITS)
def test_two_processes_end_where_one_does(fits, name):
    first, second = (found[name] for found in fits)
    assert first["weights"] == second["weights"]  # to the bit
    assert first["history"] == second["history"]
    assert first["scale"] == second["scale"]
    assert first["gap"] <= 1e-4 * first["size"]
    assert first["scale"] == pytest.approx(first["scale alone"], rel=1e-4)
    for ours, alone in zip(first["history"], first["history alone"], strict=True):
        assert ours.pop("phase") == alone.pop("phase")
        assert ours == pytest.approx(alone, rel=1e-4)


@pytest.mark.slow
def test_the_gradient_is_that_of_one_process(tmp_path):
    found = torchrun("gradients", tmp_path)
    assert len(found[0]) == 2 * len(MEASURES)
    for gaps in found:
        for name, gap in gaps.items():
            assert gap <= ROUND_OFF[name.split()[1]], name


@pytest.mark.slow
def test_passes_and_batches_of_one_s_own(tmp_path):
    first, second = torchrun("streams", tmp_path)
    assert first["auto"] == second["auto"]
    for ours, alone in zip(first["auto"], first["single"], strict=True):
        np.testing.assert_allclose(ours, alone, atol=2e-5)


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    return torchrun("refusals", tmp_path_factory.mktemp("refusals"), seconds=20)


#: What both say, or what the one says that fails, and what the other says of it.
REFUSALS = {
    "parameters": "ranks 0 and 1 differ in n_components (6 and 7): start all with the same",
    "rows": "ranks 0 and 1 differ in X: start all with the same parameters and the same rows",
    "number of rows": "differ in the shape of X ((600, 64) and (599, 64))",
    "batch": "batches of 41 rows, which cannot be divided among 2 processes: set batch_size to",
    "gap": (1, "Input X contains NaN", "rank 1 failed (ValueError: Input X contains NaN"),
    "gap on disk": (1, "row 317 of X contains NaN", "rank 1 failed (ValueError: row 317 of X"),
    "folder": (0, "folder that does not exist", "rank 0 failed (ValueError: checkpoint="),
    "callback": (1, "KeyError: 'of a callback'", "rank 1 failed (KeyError: 'of a callback')"),
    "engine": "engine='several' is not known",
    "Ctrl-C": (1, "KeyboardInterrupt: ", "rank 1 failed (KeyboardInterrupt: )"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSALS)
def test_all_processes_say_what_is_wrong(refusals, case):
    expected = REFUSALS[case]
    if isinstance(expected, str):
        assert all(expected in said[case] for said in refusals)
    else:
        rank, own, others = expected
        assert own in refusals[rank][case]
        assert refusals[1 - rank][case].startswith("LostProcessError: ")
        assert others in refusals[1 - rank][case]


@pytest.mark.slow
def test_a_process_that_is_killed_is_started_again_and_all_go_on(tmp_path):
    found = torchrun("killed", tmp_path, "--max-restarts", "1")
    assert [result["same"] for result in found] == [True, True]
    # The model that was written can be trained further, by several and by one.
    results = torchrun("loading", tmp_path)
    assert results[0] == results[1]
    alone = load(tmp_path / "model.safetensors").partial_fit(ranks.X)
    np.testing.assert_allclose(results[0]["weights"], ranks.weights(alone), atol=2e-5)


@pytest.mark.slow
def test_two_hosts_meet_at_an_address(tmp_path):
    """Two of torchrun's agents, each at an address of its own, with a process each."""
    port = _free_port()
    agents = [
        torchrun(
            "hosts", tmp_path, n=1, check=False,
            address=["--nnodes", "2", "--node-rank", str(i), "--rdzv-backend", "c10d",
                     "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "test",
                     "--local-addr", f"127.0.0.{1 + i}"],
        )
        for i in range(2)
    ]  # fmt: skip
    said = [agent.communicate(timeout=200)[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], said[0][-2000:] + said[1][-2000:]
    found = [json.loads((tmp_path / f"hosts-{rank}.json").read_text()) for rank in range(2)]
    assert [result["world"] for result in found] == [2, 2]
    assert max(result["gap"] for result in found) < 1e-5
    assert found[0]["kernels"] == found[1]["kernels"]
    assert found[0]["drawn"] == found[1]["drawn"]


def _free_port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


# --- alone ----------------------------------------------------------------------------------------


def test_one_process_tells_itself():
    assert present() is ALONE
    assert ALONE.gather(3) == [3]
    assert ALONE.first("a") == "a"
    assert ALONE.highest(2) == 2
    assert ALONE.part(7) == slice(0, 7)
    assert in_shares(abs, [-1, -2]) == [1, 2]
    assert speaks()


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_parts_are_everything_once(n, size):
    found = []
    for rank in range(size):
        someone = processes.Processes()
        someone.rank, someone.size = rank, size
        found += range(n)[someone.part(n)]
    assert found == list(range(n))


def test_what_torchrun_tells(monkeypatch):
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    for name, value in zip(names, ("1", "2", "localhost", "1"), strict=True):
        monkeypatch.setenv(name, value)
    assert is_distributed("auto")
    assert is_distributed("distributed")
    assert not is_distributed("single")
    assert not speaks()
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert not is_distributed("auto")
    assert speaks()
    monkeypatch.delenv("MASTER_PORT")
    assert not is_distributed("auto")
    with pytest.raises(ValueError, match=r"MASTER_PORT is not set .* with torchrun"):
        is_distributed("distributed")


@pytest.mark.parametrize("text", ["soon", "0", "-3", "nan", "inf"])
def test_a_limit_that_is_none(text, monkeypatch):
    monkeypatch.setenv("DKAE_TIMEOUT", text)
    with pytest.raises(ValueError, match=f"DKAE_TIMEOUT={text} must be a number of seconds"):
        processes.timeout_of_environment()


def test_an_engine_that_is_not_known(rows):
    with pytest.raises(ValueError, match="engine='many' is not known: expected one of 'auto'"):
        DeepKernelizedAutoencoder(engine="many").fit(rows)


# --- the command line -----------------------------------------------------------------------------


def dkae_in_two(*arguments):
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "-m", "dkae", *map(str, arguments),
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)


@pytest.mark.slow
def test_the_command_line_in_two_processes(tmp_path):
    out, state = tmp_path / "model.safetensors", tmp_path / "state"
    options = ["--components", "4", "--set", "decoder_max_iter=1", "--steps-per-epoch", "5"]
    done = dkae_in_two("fit", "digits", "-o", out, "--checkpoint", state, *options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("1797 rows -> 4 components") == 1  # one speaks for all
    assert done.stderr.count("decoder: epochs to train: 1") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.safetensors"]
    assert load(out).transform(np.zeros((2, 64))).shape == (2, 4)
    again = dkae_in_two("fit", "digits", "-o", tmp_path / "b.safetensors", "--batch-size", "31")
    assert again.returncode != 0
    for rank in (0, 1):
        assert f"Error: rank {rank}: batch_size=31 makes batches of 31 rows, which" in again.stderr
