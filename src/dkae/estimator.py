"""DeepKernelizedAutoencoder: the scikit-learn face of the network and its training."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dkae._runtime.checks import check_boolean, check_choice, check_integer
from dkae._runtime.fitting import unchanged_on_failure
from dkae.kernels import Kernel, Precomputed, check_block, make_kernel
from dkae.kernels.base import FixedPrior, Floats, sample_rows
from dkae.metrics.comparison import compare_grams
from dkae.networks.stacked import (
    ACTIVATIONS,
    Autoencoder,
    build_autoencoder,
    choose_output_activation,
)
from dkae.training import (
    FINE_TUNING,
    Progress,
    Settings,
    check_path,
    make_progress,
    run_training,
    start_from,
)

__all__ = ["DeepKernelizedAutoencoder"]

#: Training rows whose block of the prior is checked before training and fixes the scale after it.
N_SAMPLE_ROWS = 512


class DeepKernelizedAutoencoder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""An explicit, invertible feature map for any kernel.

    An autoencoder whose codes c(x) are trained so that their inner products align with a kernel,
    while its decoder gives x back (Eq. 8 of the paper, for a batch of k rows):

    .. math::
        L = \frac{1 - \lambda}{kd} \sum_{i=1}^{k} \|x_i - \tilde x_i\|^2 + \lambda \left\|
            \frac{C_k}{\|C_k\|_F} - \frac{P_k}{\|P_k\|_F} \right\|_F ,
        \qquad (C_k)_{ij} = c(x_i)^\top c(x_j), \quad (P_k)_{ij} = \kappa(x_i, x_j) .

    After `fit`, `transform` approximates the map φ into kernel space and `inverse_transform` the
    map back. The n × n Gram matrix is never needed.

    Parameters
    ----------
    n_components : int, default=500
        N_c, the width of the code.
    kernel : str, callable, Gaussian-process kernel or Kernel, default="rbf"
        Name of a kernel of scikit-learn's ``pairwise_kernels``; "pck", the Probabilistic Cluster
        Kernel of the paper; "forest"; a function ``(X, Y) -> Gram`` of
        two arrays of rows; an object of ``sklearn.gaussian_process.kernels``; or a kernel of
        `dkae.kernels`. A Gram matrix is passed to `fit`.
    gamma : {"median", "scale"}, float or None, default="median"
        γ of the kernels that have one; see `dkae.kernels.bandwidth`. None is 1 / n_features.
    degree, coef0 : float, default=3 and 1
        Parameters of the polynomial and the sigmoid kernel.
    kernel_params : mapping, optional
        Keyword arguments of a callable kernel, or parameters of "pck" and "forest".
    alignment_weight : float, default=0.1
        λ in [0, 1]: 0 is a plain autoencoder, 1 only aligns.
    hidden_layer_sizes : sequence of int, default=(500, 500, 2000)
        Widths of the layers between input and code; the decoder mirrors them. May be empty.
    activation, code_activation : str, default="gelu" and "identity"
        Activation of the hidden layers and of the code.
    output_activation : str, default="auto"
        Activation of the reconstruction. "auto" is the sigmoid where all of X lies in [0, 1], and
        the identity elsewhere.
    tied_weights : bool, default=True
        Whether the decoder uses the transposed weights of the encoder while both are trained. If
        not, it starts from them. Layers given to `fit` keep a decoder of their own, if they have
        one, as those of a model whose decoder was trained alone.
    batch_size : int, default=200
        k, at most the number of rows.
    max_iter : int, default=20
        Epochs of training end to end; 0 leaves it out.
    epoch : {"samples", "pairs"} or int, default=100
        Batches of an epoch: n/k, the paper's (n/k)², or a fixed number.
    pretrain_max_iter : int, default=0
        Epochs of layer-wise pretraining of each layer; 0 switches it off.
    decoder_max_iter : int, default=5
        Epochs in which the decoder alone is trained in the end, with weights of its own, on the
        reconstruction only and with half the learning rate; the codes stay what they are. 0
        switches it off: tied weights then stay tied.
    learning_rate : {"onecycle", "cosine", "constant"}, default="onecycle"
        Schedule of the learning rate; "onecycle" also moves Adam's first moment between 0.95 and
        0.85, as is usual with it.
    learning_rate_init : float, default=0.002
        The (largest) learning rate of Adam.
    max_grad_norm : float, optional
        Gradients are clipped to this norm.
    input_noise : float, default=0.0
        After pretraining the encoder sees each row with Gaussian noise of a random standard
        deviation up to this; the decoder must give back the clean row, and the prior is that of
        the clean row.
    early_stopping : bool, default=False
        Stop when the validation loss has not fallen by `tol` for `n_iter_no_change` epochs, and
        keep the weights of the best epoch, or those that the decoder had before it was trained
        alone.
    validation_fraction : float, optional
        Share of the rows that is held out and evaluated after each epoch. None is 0.1 with early
        stopping and nothing without.
    n_iter_no_change : int, default=10
        Patience of early stopping.
    tol : float, default=1e-4
        Smallest gain that early stopping counts.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where the network runs.
    precision : {"float32", "bfloat16"}, default="float32"
        Precision of the network; the losses are always in float32.
    random_state : int, RandomState or None, default=None
        Seed of weights, batches and noise. With a fixed one, results are bit-identical on one
        machine with the same number of threads.
    verbose : int or Progress, default=0
        0 is silent, 1 shows a progress bar; an object with the methods of
        `dkae.training.progress.Progress` is told of every step.

    Attributes
    ----------
    network_ : Autoencoder
        The trained network, a torch module.
    kernel_ : Kernel or None
        The fitted kernel; None after ``fit(X, gram=P)``.
    kernel_scale_ : float
        Factor between inner products of codes and the kernel, which the loss leaves open.
    history_ : list of dict
        One record for each epoch: phase, epoch, and the loss with both of its terms on the training
        batches and, if held out, on the validation part. Where only the reconstruction is trained
        (λ = 0, a layer below the code, the decoder alone), it is the loss, and the training batches
        have no alignment loss: the kernel is not evaluated for them.
    n_iter_ : int
        Epochs of training end to end.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The fitted model holds no training data, unless `kernel` itself does. The gamma of the default
    kernel is chosen on a sample of 1,000 rows.

    References
    ----------
    M. Kampffmeyer, S. Løkse, F. M. Bianchi, R. Jenssen, L. Livi: Deep Kernelized Autoencoders,
    Scandinavian Conference on Image Analysis, 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dkae import DeepKernelizedAutoencoder
    >>> X = load_digits().data / 16
    >>> model = DeepKernelizedAutoencoder(32, hidden_layer_sizes=(128,), random_state=0).fit(X)
    >>> codes = model.transform(X)
    >>> codes.shape, model.inverse_transform(codes).shape
    ((1797, 32), (1797, 64))
    """

    def __init__(
        self,
        n_components: int = 500,
        *,
        kernel: str | Callable[..., Any] | Kernel = "rbf",
        gamma: str | float | None = "median",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        alignment_weight: float = 0.1,
        hidden_layer_sizes: Sequence[int] = (500, 500, 2000),
        activation: str = "gelu",
        code_activation: str = "identity",
        output_activation: str = "auto",
        tied_weights: bool = True,
        batch_size: int = 200,
        max_iter: int = 20,
        epoch: str | int = 100,
        pretrain_max_iter: int = 0,
        decoder_max_iter: int = 5,
        learning_rate: str = "onecycle",
        learning_rate_init: float = 0.002,
        max_grad_norm: float | None = None,
        input_noise: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float | None = None,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        device: str = "auto",
        precision: str = "float32",
        random_state: int | np.random.RandomState | None = None,
        verbose: int | Progress = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alignment_weight = alignment_weight
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.code_activation = code_activation
        self.output_activation = output_activation
        self.tied_weights = tied_weights
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.epoch = epoch
        self.pretrain_max_iter = pretrain_max_iter
        self.decoder_max_iter = decoder_max_iter
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.max_grad_norm = max_grad_norm
        self.input_noise = input_noise
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    # --- the map and its inverse -------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: object = None,
        *,
        gram: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        pretrained: Autoencoder | None = None,
    ) -> Self:
        """Learn the feature map and its inverse.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, at least two.
        y : None
            Ignored.
        gram : array of shape (n_samples, n_samples), optional
            Gram matrix of the rows of X, used instead of `kernel`. Of a NumPy memmap only the
            blocks of the batches are read, and one of 512 rows to check it.
        checkpoint : path, optional
            File that keeps the state of the training, written at the end of an epoch, once a minute
            at most. Where it exists, training goes on from it, to the very result of an unbroken
            fit; Ctrl-C is then an error and not the end of training. Delete it once the model is
            saved.
        pretrained : Autoencoder, optional
            Lowest layers of the network, such as ``Autoencoder(model.network_.layers[:-1])``. Their
            weights are copied, those of the decoder too where it has its own, and pretraining
            leaves these layers out. With all layers, ``max_iter=0`` and ``decoder_max_iter`` an
            inverse is learnt for an encoder that stays as it is.
        """
        with unchanged_on_failure(self):
            return self._fit(X, y, gram, checkpoint, pretrained)

    def _fit(self, X: Any, y: object, gram: Any, checkpoint: Any, pretrained: Any) -> Self:
        settings, progress = Settings.of(self), make_progress(self.verbose)
        path = check_path(checkpoint, self.random_state)
        X = validate_data(self, X, dtype=np.float32, ensure_min_samples=2)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        network = self._build_network(X, seed)
        n_given = start_from(pretrained, network)
        settings.check_encoder(n_given, len(network.layers))
        kernel = self._make_kernel(gram).fit(X, y)
        prior = kernel.on(X)
        rows = sample_rows(len(X), N_SAMPLE_ROWS)
        block = prior.block(rows)
        check_block(block, str(kernel))
        self.history_ = run_training(
            network,
            X,
            prior,
            settings,
            rng=np.random.default_rng(seed),
            progress=progress,
            checkpoint=path,
            n_given=n_given,
        )
        self.n_iter_ = sum(record["phase"] == FINE_TUNING for record in self.history_)
        self.network_ = network
        self.kernel_ = kernel if gram is None else None
        self.kernel_scale_ = compare_grams(network.encode_rows(X[rows]), FixedPrior(block)).scale
        return self

    def transform(self, X: Any) -> Floats:
        """Return the codes of the rows of X, in float32: the map φ into kernel space."""
        check_is_fitted(self)
        return self.network_.encode_rows(validate_data(self, X, dtype=np.float32, reset=False))

    def inverse_transform(self, X: Any) -> Floats:
        """Return the rows that the decoder gives for codes: the map φ⁻¹ back to input space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Codes from `transform`, or points of code space that no input maps to.
        """
        check_is_fitted(self)
        codes = check_array(X, dtype=np.float32, input_name="codes")
        if codes.shape[1] != self._n_features_out:
            raise ValueError(
                f"codes has {codes.shape[1]} columns, but the model was fitted with "
                f"n_components={self._n_features_out}: pass codes as transform returns them"
            )
        return self.network_.decode_rows(codes)

    def gram(self, X: Any, Y: Any = None) -> Floats:
        """Return the kernel that the codes represent, ``kernel_scale_ * c(x)ᵀ c(y)``.

        This is an approximation of κ(X, Y), with Y = X if it is not given.
        """
        codes_x = self.transform(X)
        codes_y = codes_x if Y is None else self.transform(Y)
        return np.float32(self.kernel_scale_) * (np.asarray(codes_x) @ np.asarray(codes_y).T)

    def score(self, X: Any, y: object = None, *, gram: Any = None) -> float:
        """Return the alignment A(C, P) in [0, 1] of the codes with the kernel on all pairs of X.

        Time is O(n²), memory is not: the matrices are gone through tile by tile.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to compare on.
        y : None
            Ignored.
        gram : array of shape (n_samples, n_samples), optional
            Gram matrix of these rows; needed if the model was fitted with one.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, reset=False)
        kernel = self.kernel_ if gram is None else Precomputed(gram).fit(X)
        if kernel is None:
            raise ValueError(
                "the model has no kernel that it could evaluate on X, because it was fitted with a "
                "Gram matrix or loaded without its kernel: pass gram=, the Gram matrix of these "
                "rows"
            )
        return max(0.0, compare_grams(self.network_.encode_rows(X), kernel.on(X)).alignment)

    # --- the parts of fit --------------------------------------------------------------------

    def _make_kernel(self, gram: Any) -> Kernel:
        if gram is not None:
            return Precomputed(gram)
        return make_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            random_state=self.random_state,
        )

    def _build_network(self, X: Floats, seed: int) -> Autoencoder:
        hidden = self.hidden_layer_sizes
        hidden = hidden if isinstance(hidden, Iterable) else (hidden,)
        hidden = [check_integer("each of hidden_layer_sizes", n, at_least=1) for n in hidden]
        return build_autoencoder(
            [X.shape[1], *hidden, check_integer("n_components", self.n_components, at_least=1)],
            activation=check_choice("activation", self.activation, ACTIVATIONS),
            code_activation=check_choice("code_activation", self.code_activation, ACTIVATIONS),
            output_activation=choose_output_activation(self.output_activation, X.min(), X.max()),
            tied=check_boolean("tied_weights", self.tied_weights),
            generator=torch.Generator().manual_seed(seed),
        )

    # --- the scikit-learn contract -----------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return self.network_.n_components

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the network as it is on the CPU: the reader may have no GPU."""
        state: dict[str, Any] = dict(super().__getstate__())
        network = state.get("network_")
        if network is not None and next(network.parameters()).device.type != "cpu":
            state["network_"] = copy.deepcopy(network).cpu()
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # float32 in, float32 out; anything else also comes out as float32, with no float64 copy.
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
