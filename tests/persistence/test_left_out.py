"""Kernels that are code or data of the user's: not in the file, said so, and brought back."""

from __future__ import annotations

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder, load, save
from dkae.kernels import (
    FunctionKernel,
    Kernel,
    PairwiseKernel,
    Precomputed,
    ProbabilisticClusterKernel,
    center,
    ideal_kernel,
    normalize,
)
from dkae.spectral import KernelPCA, PreImage
from tests.persistence.helpers import X, assert_same_maps, cube_of_inner_products, make

OTHER = np.random.default_rng(5).random((7, 5), dtype=np.float32)


class Overlap(Kernel):
    def __init__(self, power=1.0):
        self.power = power

    def evaluate(self, A, B):
        return np.minimum(A[:, None], A if B is None else B).sum(axis=2) ** self.power


def scaled_inner_products(A, B, scale=1.0):
    return scale * A @ B.T


#: Each kernel that no file holds, the words that name it, and another one like it.
KERNELS = {
    "function": (cube_of_inner_products, "kernel cube_of_inner_products", scaled_inner_products),
    "lambda": (lambda A, B: A @ B.T, "kernel <lambda>", lambda A, B: A @ B.T + 1),
    "function with parameters": (
        FunctionKernel(scaled_inner_products, {"scale": 2.0}),
        "kernel scaled_inner_products",
        FunctionKernel(scaled_inner_products, {"scale": 2.1}),
    ),
    "own class": (Overlap(), "kernel Overlap", Overlap(2.0)),
    "part of a sum": (
        Overlap() + PairwiseKernel("rbf"),
        "kernel SumKernel",
        (Overlap() * 2.0).fit(X),
    ),
    "part of others": (
        normalize(center(Overlap())),
        "kernel NormalizedKernel",
        normalize(Overlap()).fit(X),
    ),
}
every_kernel = pytest.mark.parametrize("name", KERNELS)


def kpca(kernel, **params):
    return KernelPCA(2, kernel=kernel, preimage=PreImage(random_state=0), **params)


MODELS = {
    "stack": make,
    "layer": lambda kernel: make(kernel=kernel, network="kernel_layer"),
    "KernelPCA": lambda kernel: kpca(kernel),
}


def build(kind, kernel):
    return make(kernel=kernel) if kind == "stack" else MODELS[kind](kernel)


def saved(model, path, match):
    with pytest.warns(UserWarning, match=match) as caught:
        save(model, path)
    assert len(caught) == 1
    return load(path)


@every_kernel
@pytest.mark.parametrize("kind", MODELS)
def test_a_kernel_that_is_left_out_comes_back(name, kind, tmp_path):
    kernel, words, other = KERNELS[name]
    model = build(kind, kernel).fit(X)
    message = rf"m does not hold {words}, which is code or data of yours \(.* is a .*\): after load"
    loaded = saved(model, tmp_path / "m", message)

    assert loaded.kernel_ is None
    if kind == "stack":
        np.testing.assert_array_equal(loaded.transform(OTHER), model.transform(OTHER))
        with pytest.raises(ValueError, match="loaded without its kernel: pass gram="):
            loaded.score(X)
    elif kind == "layer":
        with pytest.raises(ValueError, match=r"call model\.attach_kernel\(kernel\) first"):
            loaded.transform(OTHER)
    else:
        with pytest.raises(ValueError, match="attach_kernel"):
            loaded.transform(OTHER)
    codes = model.transform(X)
    np.testing.assert_array_equal(loaded.inverse_transform(codes), model.inverse_transform(codes))

    with pytest.raises(
        ValueError, match=r"is not the kernel of the fit: on 8 rows its values differ"
    ):
        loaded.attach_kernel(other)
    assert loaded.kernel_ is None

    assert loaded.attach_kernel(model.kernel_) is loaded
    np.testing.assert_array_equal(loaded.transform(OTHER), model.transform(OTHER))
    if kind != "KernelPCA":
        assert_same_maps(loaded, model)
        assert loaded.score(X) == model.score(X)


@every_kernel
def test_what_is_saved_without_its_kernel_can_be_saved_again(name, tmp_path):
    kernel, words, _ = KERNELS[name]
    loaded = saved(build("stack", kernel).fit(X), tmp_path / "a", words)
    save(loaded, tmp_path / "b")  # no warning: there is nothing to leave out
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with pytest.raises(ValueError, match="is not the kernel of the fit"):
        load(tmp_path / "b").attach_kernel(PairwiseKernel("rbf", gamma=9.0).fit(X))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    "kernel",
    ["rbf", PairwiseKernel("poly"), PairwiseKernel("rbf", gamma=1.0), len, lambda A, B: A],
    ids=["rbf", "poly", "gamma", "len", "rows"],
)
def test_what_is_not_the_kernel_is_refused(kind, kernel, tmp_path):
    loaded = saved(build(kind, Overlap()).fit(X), tmp_path / "m", "Overlap")
    with pytest.raises(ValueError, match=r"pass the kernel|Pass the same kernel|fit it first"):
        loaded.attach_kernel(kernel)


# --- Gram matrices and labels --------------------------------------------------------------------

GIVEN = {
    "gram": lambda: Precomputed(X @ X.T, rows=X),
    "ideal kernel": lambda: ideal_kernel(np.arange(len(X)) % 3, rows=X),
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_kernel_of_known_rows_is_left_out(name, tmp_path):
    model = make(kernel=GIVEN[name]()).fit(X)
    loaded = saved(model, tmp_path / "m", f"m does not hold {name}, which is code or data of yours")
    np.testing.assert_array_equal(loaded.transform(OTHER), model.transform(OTHER))
    with pytest.raises(ValueError, match="pass gram="):
        loaded.score(X)
    assert loaded.score(X, gram=X @ X.T) == model.score(X, gram=X @ X.T)
    with pytest.warns(UserWarning, match="nobody can say whether this is its kernel"):
        loaded.attach_kernel(model.kernel_)
    assert loaded.score(X) == model.score(X)


@pytest.mark.parametrize("name", GIVEN)
def test_kernel_pca_of_known_rows(name, tmp_path):
    model = kpca(GIVEN[name]()).fit(X)
    loaded = saved(model, tmp_path / "m", name)
    with pytest.raises(ValueError, match="attach_kernel"):
        loaded.transform(X)
    with pytest.raises(ValueError, match=r"is not the kernel of the fit|cannot be evaluated"):
        loaded.attach_kernel("rbf")
    np.testing.assert_array_equal(
        loaded.attach_kernel(model.kernel_).transform(X), model.transform(X)
    )


@pytest.mark.parametrize("make_model", [make, lambda: kpca("rbf")], ids=["stack", "KernelPCA"])
def test_a_gram_that_was_handed_in_is_in_no_fitted_model_either(make_model, tmp_path):
    model = make_model().fit(X, gram=X @ X.T)
    loaded = saved(model, tmp_path / "m", "m does not hold a kernel, .* fitted with a Gram matrix")
    if isinstance(model, DeepKernelizedAutoencoder):
        np.testing.assert_array_equal(loaded.transform(OTHER), model.transform(OTHER))
    else:
        with pytest.raises(ValueError, match="pass gram="):
            loaded.transform(X)
        with (
            pytest.warns(UserWarning, match="nobody can say"),
            pytest.raises(ValueError, match="keeps no training rows, which kernel 'rbf' needs"),
        ):
            loaded.attach_kernel(PairwiseKernel("rbf").fit(X))
        block = OTHER @ X.T
        expected = model.transform(OTHER, gram=block)
        np.testing.assert_array_equal(loaded.transform(OTHER, gram=block), expected)


# --- without the kernel, because the user says so ------------------------------------------------


def pck(**params):
    return ProbabilisticClusterKernel(6, 6, random_state=0, reg_covar=1e-2, **params)


@pytest.mark.parametrize("kind", ["stack", "layer"])
def test_a_file_without_its_mixtures_is_much_smaller(kind, tmp_path):
    rows = np.random.default_rng(0).random((60, 30), dtype=np.float32)
    model = build(kind, pck()).fit(rows)
    save(model, tmp_path / "whole")
    save(model, tmp_path / "part", kernel=False)  # no warning: it was asked for
    whole, part = ((tmp_path / name).stat().st_size for name in ("whole", "part"))
    assert part < whole / 2

    loaded = load(tmp_path / "part")
    with pytest.raises(ValueError, match=r"fit it first|not fitted"):
        loaded.attach_kernel(pck())
    with pytest.raises(ValueError, match="is not the kernel of the fit"):
        loaded.attach_kernel(pck(normalize="cosine").fit(rows[:40]))
    loaded.attach_kernel(pck().fit(rows))
    np.testing.assert_array_equal(loaded.transform(rows), model.transform(rows))
    assert loaded.score(rows) == model.score(rows)


def test_a_name_that_must_be_fitted_is_not_enough(tmp_path):
    save(make(kernel="pck", kernel_params={"max_components": 3, "n_initializations": 2}).fit(X),
         tmp_path / "m", kernel=False)  # fmt: skip
    with pytest.raises(ValueError, match="fit it first"):
        load(tmp_path / "m").attach_kernel("pck")


def test_kernel_pca_without_its_mixtures(tmp_path):
    """Its rows are not in the file, so that nobody can say which kernel it was."""
    model = kpca(pck()).fit(X)
    save(model, tmp_path / "m", kernel=False)
    loaded = load(tmp_path / "m")
    with pytest.raises(ValueError, match="attach_kernel"):
        loaded.transform(X)
    with pytest.warns(UserWarning, match="nobody can say"):
        loaded.attach_kernel(pck().fit(X))
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_a_kernel_that_fails_on_other_rows_does_not_keep_a_model_from_its_file(tmp_path):
    known = {row.tobytes() for row in X}

    def picky(A, B):
        if not {row.tobytes() for row in A} <= known:
            raise RuntimeError("never seen")
        return A @ B.T

    model = make(kernel=picky).fit(X)
    loaded = saved(model, tmp_path / "m", "does not hold kernel picky")
    np.testing.assert_array_equal(loaded.transform(OTHER), model.transform(OTHER))


def test_a_kernel_of_infinite_values_does_not_keep_a_model_from_its_file(tmp_path):
    def huge(A, B):
        known = A.base is X or len(A) > 8
        return A @ B.T if known else np.full((len(A), len(B)), np.inf)

    model = make(kernel=huge).fit(X)
    assert saved(model, tmp_path / "m", "huge").transform(X).shape == (30, 3)


def test_kernels_by_name_that_learn_nothing_need_no_fit(tmp_path):
    for kernel in ("linear", PairwiseKernel("rbf", gamma=0.5)):
        model = make(kernel=kernel).fit(X)
        save(model, tmp_path / "m", kernel=False)
        assert load(tmp_path / "m").attach_kernel(kernel).score(X) == model.score(X)
        with pytest.raises(ValueError, match="is not the kernel of the fit"):
            load(tmp_path / "m").attach_kernel(PairwiseKernel("rbf", gamma=7.0))


def test_bandwidths_far_from_the_data_s_are_told_apart(tmp_path):
    """Between rows that are far from each other every narrow kernel is zero."""
    wide = 30 * np.random.default_rng(0).standard_normal((60, 20)).astype(np.float32)
    model = make(kernel="rbf", gamma=1.0).fit(wide)
    save(model, tmp_path / "m", kernel=False)
    for gamma in (0.1, 0.5, 3.0):
        with pytest.raises(ValueError, match="is not the kernel of the fit"):
            load(tmp_path / "m").attach_kernel(PairwiseKernel("rbf", gamma=gamma))


def test_a_new_fit_forgets_the_values_of_the_file(tmp_path):
    save(make().fit(X), tmp_path / "m")
    loaded = load(tmp_path / "m")
    loaded.fit(X, gram=X @ X.T)
    saved(loaded, tmp_path / "n", "n does not hold a kernel")
