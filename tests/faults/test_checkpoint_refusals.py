"""States that a training does not resume from, and their files afterwards."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from dkae import save
from dkae._support import safe_file
from dkae._support.json_state import pack
from dkae.kernels import ideal_kernel
from dkae.networks import Autoencoder
from dkae.training import Callback, checkpoint, has_checkpoint, remove_checkpoint
from tests.training.helpers import Killed, assert_same


@pytest.fixture
def stopped(rows, tiny, tmp_path, always, break_at):
    """Return a function that breaks a fit after two epochs, and returns its file."""

    def stop(n_epochs=2, **how):
        gram = how.pop("gram", None)
        break_at(n_epochs)
        with pytest.raises(Killed):
            tiny(**({"max_iter": 3} | how)).fit(rows, gram=gram, checkpoint=tmp_path / "state")
        break_at(None)
        return tmp_path / "state"

    return stop


def rewrite(file, change):
    """Write a checkpoint again with other content, and a checksum that is right."""
    packed, tensors = pack(checkpoint._read(file) | change)
    safe_file.write(file, {"format": checkpoint.FORMAT, "state": packed}, tensors)
    checkpoint.previous(file).unlink(missing_ok=True)


# --- of another run ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "difference"),
    [
        ({"max_iter": 4}, r"max_iter \(3 in the file, 4 here; only learning_rate='const"),
        ({"max_iter": 2}, r"max_iter \(3 in the file, 2 here"),
        ({"optimization__learning_rate": "constant"}, "learning_rate .'onecycle' in the file"),
        ({"network__hidden_layer_sizes": (17,)}, "network, initial weights"),
        ({"random_state": 1}, "random_state, initial weights"),
        ({"gamma": 0.1}, "kernel"),
        ({"kernel": "linear"}, "kernel"),
    ],
    ids=str,
)
def test_the_state_of_another_model(params, difference, rows, tiny, stopped):
    file = stopped()
    before = file.read_bytes()
    message = f"checkpoint=.*state is from another run, which differs in {difference}.*: delete"
    with pytest.raises(ValueError, match=message):
        tiny(**({"max_iter": 3} | params)).fit(rows, checkpoint=file)
    assert file.read_bytes() == before


def test_the_state_of_other_rows_or_layers(rows, tiny, stopped):
    file = stopped()
    with pytest.raises(ValueError, match=r"number of rows \(80 in the file, 60 here\), X"):
        tiny(max_iter=3).fit(rows[:60], checkpoint=file)
    changed = rows.copy()
    changed[17, 5] += 1e-3
    with pytest.raises(ValueError, match="differs in X: delete the file to start again, or"):
        tiny(max_iter=3).fit(changed, checkpoint=file)
    layers = tiny(random_state=1).fit(rows).network_.layers
    with pytest.raises(ValueError, match=r"differs in .*initial weights: delete"):
        tiny(max_iter=3, network=Autoencoder(layers)).fit(rows, checkpoint=file)
    remove_checkpoint(file)
    file = stopped(network=Autoencoder(layers), pretrain_max_iter=1)
    network = Autoencoder(layers, n_pretrained=1)
    message = r"stages \('layer 1, layer 2' in the file, 'layer 2' here"
    with pytest.raises(ValueError, match=message):
        tiny(max_iter=3, network=network, pretrain_max_iter=1).fit(rows, checkpoint=file)


def test_the_state_of_another_gram_or_other_labels(rows, tiny, stopped):
    """Also where it differs only outside of the rows that are compared as numbers."""
    gram, y = rows @ rows.T, np.arange(len(rows)) % 3
    file = stopped(gram=gram)
    for i in range(0, len(gram), 7):
        other = gram.copy()
        other[i, i] += 1e-3
        with pytest.raises(ValueError, match="differs in gram"):
            tiny(max_iter=3).fit(rows, gram=other, checkpoint=file)
    remove_checkpoint(file)
    file = stopped(kernel=ideal_kernel(y))
    for i in range(0, len(rows), 7):
        other = y.copy()
        other[i] = (other[i] + 1) % 3
        with pytest.raises(ValueError, match="differs in gram"):
            tiny(max_iter=3, kernel=ideal_kernel(other)).fit(rows, checkpoint=file)


def test_functions_that_differ_in_a_number_are_two(rows, tiny, stopped):
    def sgd(momentum):
        return lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=momentum)

    file = stopped(optimization__optimizer=sgd(0.1))
    with pytest.raises(ValueError, match="differs in optimizer"):
        tiny(max_iter=3, optimization__optimizer=sgd(0.9)).fit(rows, checkpoint=file)
    tiny(max_iter=3, optimization__optimizer=sgd(0.1)).fit(rows, checkpoint=file)


def test_a_finished_phase_cannot_become_longer(rows, tiny, stopped):
    params = {"max_iter": 1, "decoder_max_iter": 2, "optimization__learning_rate": "constant"}
    file = stopped(**params)
    with pytest.raises(ValueError, match=r"max_iter \(1 in the file, 2 here"):
        tiny(**(params | {"max_iter": 2})).fit(rows, checkpoint=file)


# --- damaged, or something else ------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.01, 0.99])
def test_a_damaged_file_is_left_for_the_one_before(share, rows, tiny, stopped):
    file = stopped()
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.warns(UserWarning, match=r"checkpoint=.*state is damaged: resuming from the"):
        resumed = tiny(max_iter=3).fit(rows, checkpoint=file)
    assert_same(resumed, tiny(max_iter=3).fit(rows))


def test_a_damaged_file_never_replaces_the_good_one_before(rows, tiny, stopped, break_at):
    file = stopped()
    good = checkpoint.previous(file).read_bytes()
    file.write_bytes(file.read_bytes()[:-1])
    break_at(0, "train_step")  # after the write at the start of the phase
    with pytest.warns(UserWarning, match="is damaged"), pytest.raises(Killed):
        tiny(max_iter=3).fit(rows, checkpoint=file)
    assert checkpoint.previous(file).read_bytes() == good
    assert checkpoint._read(file)["epoch"] > 0


def test_with_two_damaged_files_nothing_is_resumed(rows, tiny, stopped):
    file = stopped()
    file.write_bytes(file.read_bytes()[:-1])
    checkpoint.previous(file).write_bytes(b"")
    with pytest.raises(ValueError, match=r"state.previous is damaged or .*: delete"):
        tiny(max_iter=3).fit(rows, checkpoint=file)


@pytest.mark.parametrize("content", [b"my thesis", b"\x80\x02}q\x00.", "a model"], ids=str)
@pytest.mark.parametrize("has_previous", [True, False])
def test_another_file_stays_as_it_is(content, has_previous, rows, tiny, stopped):
    file = stopped()
    if not has_previous:
        remove_checkpoint(file)
    if content == "a model":
        save(tiny().fit(rows), file)
    else:
        file.write_bytes(content)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=r"is not of the format|damaged or not a checkpoint"):
        tiny(max_iter=3).fit(rows, checkpoint=file)
    assert file.read_bytes() == before


# --- a right checksum, and a state that makes no sense -------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "no such phase"},
        {"epoch": -1},
        {"epoch": 99},
        {"step": 99},
        {"step": "1"},
        {"stop": None},
        {"random": torch.zeros(3, dtype=torch.uint8)},
        {"sums": torch.zeros(7)},
        {"fingerprint": {"X": "other"}},
        {"network": {}},
        {"moments": {99: {}}},
        {"hyperparameters": []},
        {"source": {"x": 1}},
        {"callbacks": {}},
        {"callbacks": {"History 1": {"records": [1]}}},
    ],
    ids=str,
)
def test_a_state_that_makes_no_sense(change, rows, tiny, stopped):
    file = stopped()
    rewrite(file, change)
    with pytest.raises(ValueError, match=r"checkpoint=.*state (does not fit|is |of)|has a"):
        tiny(max_iter=3).fit(rows, checkpoint=file)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("exp_avg", torch.zeros(1), r"optimizer 0 exp_avg is \(1,\) of torch.float32, expected"),
        (
            "exp_avg_sq",
            torch.zeros(16, 64).double(),
            "optimizer 0 exp_avg_sq is .* of torch.float64",
        ),
        ("step", torch.zeros(3), r"optimizer 0 step is \(3,\)"),
        ("exp_avg", torch.full((16, 64), torch.nan), "optimizer 0 exp_avg has NaN"),
    ],
)
def test_moments_of_another_form_never_reach_the_optimizer(
    name, value, message, rows, tiny, stopped
):
    """Fused Adam would read and write beyond them."""
    file = stopped()
    moments = checkpoint._read(file)["moments"]
    rewrite(file, {"moments": moments | {0: moments[0] | {name: value}}})
    with pytest.raises(ValueError, match=f"checkpoint=.*does not fit this run: {message}"):
        tiny(max_iter=3).fit(rows, checkpoint=file)


def test_hyperparameters_are_those_of_this_run(rows, tiny, stopped):
    file = stopped()
    settings = checkpoint._read(file)["hyperparameters"]
    rewrite(file, {"hyperparameters": ["lr=1e+30" if s[:3] == "lr=" else s for s in settings]})
    message = r"checkpoint=.*does not fit this run: optimizer lr=1e\+30 in the file, lr=0.* here"
    with pytest.raises(ValueError, match=message):
        tiny(max_iter=3).fit(rows, checkpoint=file)


# --- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none/c", "lies in a folder that does not exist: make it first"),
        ("", "is a folder: pass the path of a file"),
        ("pipe", "is a pipe or a device: pass the path of a file"),
        (True, "checkpoint=True must be the path of a file or None"),
    ],
)
def test_paths_are_checked_before_anything_is_done(path, message, rows, tiny, tmp_path):
    """A pipe would be waited for."""
    os.mkfifo(tmp_path / "pipe")
    given = tmp_path / path if isinstance(path, str) else path
    with pytest.raises(ValueError, match=message):
        tiny(kernel="no such kernel").fit(rows, checkpoint=given)


def test_a_seed_is_needed(rows, tiny, tmp_path):
    with pytest.raises(ValueError, match=r"checkpoint needs a fixed random_state.*such as 0"):
        tiny(random_state=None).fit(rows, checkpoint=tmp_path / "c")


def test_a_full_disk_is_named(rows, tiny, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"checkpoint=.*c could not be written: .*No space left"):
        tiny().fit(rows, checkpoint=tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_two_fits_cannot_use_one_file(rows, tiny, tmp_path):
    class Another(Callback):
        def on_step_end(self, trainer, phase):
            with pytest.raises(ValueError, match=r"checkpoint=.*c is in use by another"):
                tiny().fit(rows, checkpoint=tmp_path / "c")

    tiny(callbacks=[Another()]).fit(rows, checkpoint=tmp_path / "c")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_link_is_followed_when_it_is_removed(rows, tiny, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    tiny().fit(rows, checkpoint=tmp_path / "link")
    assert has_checkpoint(tmp_path / "link")
    remove_checkpoint(tmp_path / "link")
    assert {path.name for path in tmp_path.iterdir()} == {"link"}
    assert not has_checkpoint(tmp_path / "link")
