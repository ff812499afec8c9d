"""Where two seams meet: what a user would take for granted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from torch import nn

from dkae import load, save
from dkae.codespace import interpolate
from dkae.kernels import ForestKernel, PairwiseKernel, center
from dkae.networks import ConvolutionalAutoencoder, ResidualAutoencoder, StackedNetwork
from dkae.spectral import KernelPCA
from dkae.training import Callback, EarlyStopping
from tests.ids import plain_id
from tests.training.helpers import Killed, assert_same

IMAGES = np.random.default_rng(0).random((60, 1, 6, 6)).astype(np.float32)


@pytest.fixture
def rows(digits):
    return digits[:90]


class TestGramsOfOtherRows:
    """The Gram counts; its kernel only if it is of the rows X."""

    def test_the_kernel_is_not_evaluated_on_rows_it_does_not_know(self, rows, tiny):
        kernel = PairwiseKernel("rbf").fit(100 * rows)
        model = tiny().fit(rows, gram=kernel.on(100 * rows))
        assert model.kernel_ is None
        with pytest.raises(ValueError, match="pass gram="):
            model.score(rows)
        assert 0 < model.score(rows, gram=kernel.on(100 * rows)) <= 1

    @pytest.mark.parametrize(
        "kernel", [ForestKernel(n_estimators=20, random_state=0), PairwiseKernel("rbf")], ids=str
    )
    def test_kernel_pca_decomposes_the_gram_that_it_is_given(self, kernel, rows):
        others = rows[::-1].copy()
        gram = kernel.fit(others).on(others)
        ours = KernelPCA(5, center=False).fit(rows, gram=gram)
        theirs = KernelPCA(5, center=False).fit(rows, gram=gram.block(np.arange(len(rows))))
        np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-4)

    def test_the_gram_that_was_passed_stays_as_it_was(self, rows, tiny):
        kernel = PairwiseKernel("rbf").fit(100 * rows)
        gram = kernel.on(100 * rows)
        tiny().fit(rows, gram=gram)
        assert gram.kernel is kernel


class TestKernelsOfTablesAndImages:
    def test_a_table_has_a_gram(self, rows, tiny):
        table = pytest.importorskip("pandas").DataFrame(rows)
        kernel = PairwiseKernel("rbf").fit(table)
        assert kernel.gamma_ == PairwiseKernel("rbf").fit(rows).gamma_
        assert tiny().fit(table, gram=kernel.on(table)).kernel_ is kernel

    @pytest.mark.parametrize(
        "kernel",
        [
            0.5 * PairwiseKernel("rbf") + PairwiseKernel("linear"),
            center(PairwiseKernel("poly")),
            ForestKernel(n_estimators=5, random_state=0),
        ],
        ids=plain_id,
    )
    def test_kernels_of_vectors_see_images_flattened(self, kernel, tiny):
        model = tiny(network=ConvolutionalAutoencoder, kernel=kernel).fit(IMAGES)
        flat = model.kernel_.gram(IMAGES.reshape(60, -1))
        np.testing.assert_allclose(model.prior_gram(IMAGES).block(np.arange(60)), flat, atol=1e-5)

    def test_a_fitted_kernel_in_a_sum_is_not_fitted_again(self, rows, tiny):
        fitted = PairwiseKernel("rbf").fit(10 * rows)
        model = tiny(kernel=0.5 * fitted + PairwiseKernel("linear")).fit(rows)
        assert model.kernel_.kernels_[0].kernels_[0].gamma_ == fitted.gamma_

    def test_a_kernel_that_is_not_fitted_says_so(self, rows):
        with pytest.raises(NotFittedError, match="not fitted"):
            PairwiseKernel("rbf").on(rows).block(np.arange(3))

    def test_a_kernel_is_no_gram_and_a_gram_no_kernel(self, rows, tiny):
        kernel = PairwiseKernel("rbf").fit(rows)
        with pytest.raises(ValueError, match=r"gram is a PairwiseKernel, a kernel: pass it as"):
            tiny().fit(rows, gram=kernel)
        with pytest.raises(ValueError, match=r"kernel=<RowsGram> needs .* fit\(X, gram=P\)"):
            tiny(kernel=kernel.on(rows)).fit(rows)

    def test_paths_between_several_pairs_of_images(self, tiny):
        model = tiny(network=ConvolutionalAutoencoder).fit(IMAGES)
        assert interpolate(model, IMAGES[:2], IMAGES[2:4], 3).shape == (2, 3, 1, 6, 6)


class TestRandomNumbers:
    def test_fits_in_threads_are_those_of_one(self, rows, tiny):
        def codes(seed):
            model = tiny(network=ResidualAutoencoder, random_state=seed)
            return model.fit(rows).transform(rows)

        before = torch.random.get_rng_state()
        alone = [codes(seed) for seed in range(4)]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(codes, range(4)))
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a, b)
        assert torch.equal(torch.random.get_rng_state(), before)

    def test_lazy_layers_have_weights_of_their_own(self, rows, tiny):
        class Lazy(nn.Module):
            def __init__(self, shape, n_components, generator):
                super().__init__()
                self.encode = nn.Linear(*shape, n_components)
                self.decode = nn.Sequential(nn.LazyLinear(64))

        model = tiny(network=Lazy, n_components=64, max_iter=1, steps_per_epoch=1)
        model.set_params(learning_rate_init=1e-30)
        network = model.fit(rows).network_
        eager, lazy = network.encode.weight.flatten(), network.decode[0].weight.flatten()
        assert abs(torch.corrcoef(torch.stack([eager, lazy]))[0, 1]) < 0.1


class Pair(nn.Module):
    """Nothing but two modules."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 5))
        self.decode = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 64))


def test_a_decoder_that_is_a_module_learns_alone_without_a_method(rows, tiny):
    codes = tiny(network=Pair(), random_state=0).fit(rows).transform(rows)
    model = tiny(network=Pair(), decoder_max_iter=2).fit(rows)
    assert [r["phase"] for r in model.history_] == ["fine-tuning"] * 2 + ["decoder"] * 2
    assert model.transform(rows).shape == codes.shape


def test_a_loaded_stack_of_the_user_s_is_built_again_by_fit(rows, tiny, tmp_path):
    model = tiny(network=StackedNetwork((9, 7), activation="tanh")).fit(rows)
    save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors").fit(rows)
    assert [layer.config["n_out"] for layer in again.network_.layers] == [9, 7, 5]
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))


class TestWhatEndsTraining:
    class Fails(Callback):
        def on_phase_end(self, trainer, phase):
            raise ValueError("in the callback")

    def test_a_failing_callback_does_not_hide_the_first_error(self, rows, tiny, break_at):
        break_at(3, "train_step", ZeroDivisionError)
        with pytest.raises(ZeroDivisionError) as caught:
            tiny(callbacks=[self.Fails()]).fit(rows)
        assert "in the callback" in caught.value.__notes__[0]

    def test_nor_does_it_hide_ctrl_c(self, rows, tiny, break_at):
        break_at(3, "train_step", KeyboardInterrupt)
        model = tiny(callbacks=[self.Fails()])
        with pytest.warns(ConvergenceWarning), pytest.raises(KeyboardInterrupt):
            model.fit(rows)
        assert hasattr(model, "network_")

    def test_ctrl_c_stays_ctrl_c_where_weights_are_not_finite(self, rows, tiny):
        class Breaks(Callback):
            def on_step_end(self, trainer, phase):
                with torch.no_grad():
                    next(trainer.network.parameters()).fill_(torch.nan)
                raise KeyboardInterrupt

        model = tiny(callbacks=[Breaks()])
        with pytest.raises(KeyboardInterrupt):
            model.fit(rows)
        assert not hasattr(model, "network_")

    def test_a_stop_is_not_forgotten_by_a_checkpoint(self, rows, tiny, tmp_path, always, break_at):
        class Stops(Callback):
            def on_epoch_end(self, trainer, phase, record):
                if phase.name == "fine-tuning":
                    trainer.stop = True

        def model():
            return tiny(max_iter=4, decoder_max_iter=1, callbacks=[Stops()])

        unbroken = model().fit(rows)
        assert len(unbroken.history_) == 2
        break_at(1)  # before the epoch of the decoder
        with pytest.raises(Killed):
            model().fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        assert_same(model().fit(rows, checkpoint=tmp_path / "c"), unbroken)

    def test_early_stopping_without_rows_to_watch(self, rows, tiny):
        with pytest.raises(ValueError, match=r"EarlyStopping needs rows to watch.*validation_f"):
            tiny(callbacks=[EarlyStopping(2, 0.0)]).fit(rows)

    def test_who_has_begun_is_told_of_the_end(self, rows, tiny):
        events = []

        class Opens(Callback):
            def on_train_begin(self, trainer):
                events.append("begin")

            def on_train_end(self, trainer):
                events.append("end")

        class FailsToBegin(Callback):
            def on_train_begin(self, trainer):
                raise OSError("no log file")

        with pytest.raises(OSError, match="no log file"):
            tiny(callbacks=[Opens(), FailsToBegin()]).fit(rows)
        assert events == ["begin", "end"]
