"""Files that a training does not go on from, and what is left of them."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import torch
from dkae._support.container import write_container
from dkae._support.trees import encode

from dkae import save
from dkae.kernels import ideal_kernel
from dkae.networks import Autoencoder, StackedNetwork
from dkae.training import Callback, checkpoint
from tests.training.helpers import Killed, assert_same


class TestRefusals:
    @pytest.fixture
    def file(self, rows, tiny, tmp_path, always, break_at):
        """The state of a fit of three epochs that was broken after two."""
        break_at(2)
        with pytest.raises(Killed):
            tiny(max_iter=3).fit(rows, checkpoint=tmp_path / "state")
        break_at(None)
        return tmp_path / "state"

    @pytest.mark.parametrize(
        ("params", "difference"),
        [
            ({"max_iter": 4}, r"max_iter \(3 in the file, 4 here; only learning_rate='const"),
            ({"max_iter": 2}, r"max_iter \(3 in the file, 2 here"),
            ({"max_iter": 3, "learning_rate": "constant"}, "learning_rate .'onecycle' in the file"),
            ({"max_iter": 3, "hidden_layer_sizes": (17,)}, "network, initial weights"),
            ({"max_iter": 3, "random_state": 1}, "random_state, initial weights"),
            ({"max_iter": 3, "gamma": 0.1}, "kernel"),
            ({"max_iter": 3, "kernel": "linear"}, "kernel"),
        ],
        ids=lambda value: str(value) if isinstance(value, dict) else "",
    )
    def test_another_model(self, params, difference, rows, tiny, file):
        before = file.read_bytes()
        message = f"checkpoint=.*state is from another run, which differs in {difference}.*: delete"
        with pytest.raises(ValueError, match=message):
            tiny(**params).fit(rows, checkpoint=file)
        assert file.read_bytes() == before

    def test_other_rows(self, rows, tiny, file):
        with pytest.raises(ValueError, match=r"number of rows \(80 in the file, 60 here\), X"):
            tiny(max_iter=3).fit(rows[:60], checkpoint=file)
        changed = rows.copy()
        changed[17, 5] += 1e-3
        with pytest.raises(ValueError, match="differs in X: delete the file to start again, or"):
            tiny(max_iter=3).fit(changed, checkpoint=file)

    def test_other_pretrained_layers(self, rows, tiny, file):
        pretrained = Autoencoder(tiny(random_state=1).fit(rows).network_.layers[:1])
        network = StackedNetwork((16,), output_activation="sigmoid", lower=pretrained)
        with pytest.raises(ValueError, match=r"pretrained layers \(0 in .*, initial weights"):
            tiny(max_iter=3, network=network).fit(rows, checkpoint=file)

    def test_another_device_may_go_on(self, rows, tiny, file):
        unbroken = tiny(max_iter=3).fit(rows)
        resumed = tiny(max_iter=3, device="cpu").fit(rows, checkpoint=file)
        if unbroken.network_.layers[0].weight.device.type == "cpu":
            assert_same(resumed, unbroken)

    def test_a_finished_phase_cannot_become_longer(self, rows, tiny, tmp_path, always, break_at):
        params = {"learning_rate": "constant", "max_iter": 1, "decoder_max_iter": 2}
        break_at(2)
        with pytest.raises(Killed):
            tiny(**params).fit(rows, checkpoint=tmp_path / "c")
        with pytest.raises(ValueError, match=r"max_iter \(1 in the file, 2 here"):
            tiny(**(params | {"max_iter": 2})).fit(rows, checkpoint=tmp_path / "c")

    def test_another_gram(self, rows, tiny, tmp_path, always, break_at):
        """Also where it differs only outside of the rows that are compared as numbers."""
        gram = rows @ rows.T
        break_at(2)
        with pytest.raises(Killed):
            tiny(max_iter=3).fit(rows, gram=gram, checkpoint=tmp_path / "c")
        break_at(None)
        for i in range(len(gram)):
            other = gram.copy()
            other[i, i] += 1e-3
            with pytest.raises(ValueError, match="differs in gram"):
                tiny(max_iter=3).fit(rows, gram=other, checkpoint=tmp_path / "c")

    @pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
    def test_a_damaged_file_is_left_for_the_one_before(self, share, rows, tiny, file):
        content = file.read_bytes()
        file.write_bytes(content[: int(share * len(content))])
        with pytest.warns(UserWarning, match=r"checkpoint=.*state is damaged: going on from the"):
            resumed = tiny(max_iter=3).fit(rows, checkpoint=file)
        assert_same(resumed, tiny(max_iter=3).fit(rows))

    def test_a_damaged_file_never_replaces_the_good_one_before(self, rows, tiny, file, break_at):
        good = checkpoint.previous(file).read_bytes()
        file.write_bytes(file.read_bytes()[:-1])
        break_at(0, "train_step")  # after the write at the start of the phase
        with pytest.warns(UserWarning, match="is damaged"), pytest.raises(Killed):
            tiny(max_iter=3).fit(rows, checkpoint=file)
        assert checkpoint.previous(file).read_bytes() == good
        assert checkpoint._read(file)["epoch"] > 0

    @pytest.mark.parametrize("content", [b"my thesis", b"", "model"], ids=str)
    def test_a_file_of_somebody_s_stays_though_there_is_one_before(self, content, rows, tiny, file):
        if content == "model":
            save(tiny().fit(rows), file)
        else:
            file.write_bytes(content)
        before = file.read_bytes()
        if content == b"":  # nothing is lost
            with pytest.warns(UserWarning, match="is damaged"):
                tiny(max_iter=3).fit(rows, checkpoint=file)
            return
        with pytest.raises(ValueError, match=r"is not of the format|damaged or not a checkpoint"):
            tiny(max_iter=3).fit(rows, checkpoint=file)
        assert file.read_bytes() == before

    def test_functions_that_differ_in_a_number_are_two(
        self, rows, tiny, tmp_path, always, break_at
    ):
        def model(momentum):
            return tiny(
                max_iter=3, optimizer=lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=momentum)
            )

        break_at(2)
        with pytest.raises(Killed):
            model(0.1).fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        with pytest.raises(ValueError, match="differs in optimizer"):
            model(0.9).fit(rows, checkpoint=tmp_path / "c")
        model(0.1).fit(rows, checkpoint=tmp_path / "c")

    def test_other_labels(self, rows, tiny, tmp_path, always, break_at):
        y = np.arange(len(rows)) % 3
        break_at(2)
        with pytest.raises(Killed):
            tiny(max_iter=3, kernel=ideal_kernel(y)).fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        for i in range(0, len(rows), 7):
            other = y.copy()
            other[i] = (other[i] + 1) % 3
            with pytest.raises(ValueError, match="differs in gram"):
                tiny(max_iter=3, kernel=ideal_kernel(other)).fit(rows, checkpoint=tmp_path / "c")

    def test_a_link_is_followed_when_it_is_removed(self, rows, tiny, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "file")
        tiny().fit(rows, checkpoint=tmp_path / "link")
        assert checkpoint.has_checkpoint(tmp_path / "link")
        checkpoint.remove_checkpoint(tmp_path / "link")
        assert {path.name for path in tmp_path.iterdir()} == {"link"}

    def test_without_one_before_it_is_refused(self, rows, tiny, file):
        file.write_bytes(file.read_bytes()[:-1])
        checkpoint.previous(file).write_bytes(b"")
        with pytest.raises(ValueError, match=r"state.previous is damaged or .*: delete"):
            tiny(max_iter=3).fit(rows, checkpoint=file)

    @pytest.mark.parametrize("content", [b"hello", b"\x80\x02}q\x00.", b"PK\x03\x04" + bytes(500)])
    def test_something_else(self, content, rows, tiny, tmp_path):
        (tmp_path / "c").write_bytes(content)
        with pytest.raises(ValueError, match=r"checkpoint=.*c is damaged or not a checkpoint"):
            tiny().fit(rows, checkpoint=tmp_path / "c")

    def test_a_model_is_no_checkpoint(self, rows, tiny, tmp_path):
        save(tiny().fit(rows), tmp_path / "m")
        before = (tmp_path / "m").read_bytes()
        with pytest.raises(ValueError, match=r"is not of the format 'dkae checkpoint 3'.*: delete"):
            tiny().fit(rows, checkpoint=tmp_path / "m")
        assert (tmp_path / "m").read_bytes() == before

    @pytest.mark.parametrize(
        "change",
        [
            {"phase": "no such phase"},
            {"epoch": -1},
            {"epoch": 99},
            {"step": 99},
            {"step": "1"},
            {"stop": None},
            {"parts": {}},
            {"random": torch.zeros(3, dtype=torch.uint8)},
            {"sums": "nothing"},
            {"sums": torch.zeros(7)},
            {"fingerprint": {"X": "other"}},
            {"fingerprint": []},
        ],
        ids=str,
    )
    def test_a_state_that_makes_no_sense(self, change, rows, tiny, file):
        rewrite(file, change)
        with pytest.raises(ValueError, match=r"checkpoint=.*state"):
            tiny(max_iter=3).fit(rows, checkpoint=file)

    @pytest.mark.parametrize("part", ["network", "optimizer", "schedule", "source", "History 1"])
    @pytest.mark.parametrize("content", [{}, {"x": 1}, [], None, 3], ids=str)
    def test_a_part_that_makes_no_sense(self, part, content, rows, tiny, file):
        parts = checkpoint._read(file)["parts"]
        rewrite(file, {"parts": parts | {part: content}})
        with pytest.raises(ValueError, match=r"checkpoint=.*state does not fit this run in"):
            tiny(max_iter=3).fit(rows, checkpoint=file)

    def test_nothing_in_a_file_is_executed(self, rows, tiny, tmp_path, capsys):
        class Trap:
            def __reduce__(self):
                return print, ("executed",)

        torch.save({"format": checkpoint.FORMAT, "history": Trap()}, tmp_path / "c")
        with pytest.raises(ValueError, match="damaged or not a checkpoint"):
            tiny().fit(rows, checkpoint=tmp_path / "c")
        assert "executed" not in capsys.readouterr().out

    def test_paths_are_checked_before_anything_is_done(self, rows, tiny, tmp_path):
        message = "checkpoint=.*none.c lies in a folder that does not exist: make it first"
        with pytest.raises(ValueError, match=message):
            tiny(kernel="no such kernel").fit(rows, checkpoint=tmp_path / "none" / "c")
        with pytest.raises(ValueError, match="is a folder: pass the path of a file"):
            tiny().fit(rows, checkpoint=tmp_path)
        with pytest.raises(ValueError, match="checkpoint=True must be the path of a file or None"):
            tiny().fit(rows, checkpoint=True)

    def test_a_seed_is_needed(self, rows, tiny, tmp_path):
        with pytest.raises(ValueError, match=r"checkpoint needs a fixed random_state.*such as 0"):
            tiny(random_state=None).fit(rows, checkpoint=tmp_path / "c")

    def test_a_full_disk_is_named(self, rows, tiny, tmp_path, monkeypatch):
        def write(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(checkpoint, "write_container", write)
        with pytest.raises(OSError, match=r"checkpoint=.*c could not be written: .*No space left"):
            tiny().fit(rows, checkpoint=tmp_path / "c")
        assert not list(tmp_path.iterdir())

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do it")
    def test_a_folder_that_cannot_be_written_is_found_before_any_work(self, rows, tiny, tmp_path):
        tmp_path.chmod(0o500)
        with pytest.raises(ValueError, match=r"checkpoint=.*cannot be written"):
            tiny(kernel="no such kernel").fit(rows, checkpoint=tmp_path / "c")

    def test_two_fits_with_one_file(self, rows, tiny, tmp_path):
        class Another(Callback):
            def on_step_end(self, trainer, phase):
                with pytest.raises(ValueError, match=r"checkpoint=.*c is in use by another"):
                    tiny().fit(rows, checkpoint=tmp_path / "c")

        tiny(callbacks=[Another()]).fit(rows, checkpoint=tmp_path / "c")
        assert not (tmp_path / ".c.lock").exists()


def rewrite(file, change):
    """Write a checkpoint again with other content, and a checksum that is right."""
    encoded, tensors = encode(checkpoint._read(file) | change)
    metadata = {"format": checkpoint.FORMAT, "state": json.dumps(encoded)}
    write_container(file, metadata, tensors)
    checkpoint.previous(file).unlink(missing_ok=True)
