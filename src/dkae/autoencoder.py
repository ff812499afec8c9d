"""DeepKernelizedAutoencoder: the map of the paper, learned in both directions."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from dkae._support.checks import check_boolean, check_integer, unchanged_on_failure
from dkae._support.devices import choose_device, float32_math
from dkae._support.processes import joined
from dkae.alignment import check_width
from dkae.augmentation import make_augmentation
from dkae.fit_input import FitInput, LoaderInput, PartInput, TrainingData
from dkae.kernel_map import LOGGER, KernelMap
from dkae.metrics.quality import Quality
from dkae.networks import (
    Stack,
    build_network,
    check_decoder,
    check_network,
    decode_rows,
    encode_rows,
    seeded,
    summary_of,
)
from dkae.preprocessing import mentioning_masks
from dkae.training import FINE_TUNING, Optimization
from dkae.training.batches import Source
from dkae.training.callbacks import History
from dkae.training.loaders import is_loader
from dkae.training.phases import Settings, plan_phases
from dkae.training.progress import listeners_of
from dkae.training.trainer import train
from dkae.training.views import Views

__all__ = ["DeepKernelizedAutoencoder"]


class DeepKernelizedAutoencoder(KernelMap):
    r"""An explicit, invertible feature map for any kernel, learned by an autoencoder.

    Its codes c(x) have inner products that align with a kernel, while its decoder gives x back.
    Encoder and decoder minimise the loss of Eq. 8 of the paper, over batches of k rows with their
    block P_k of the Gram matrix:

    .. math::
        L = \frac{1 - \lambda}{kd} \sum_{i=1}^{k} \sum_{j=1}^{d}
            \frac{(x_{ij} - \tilde x_{ij})^2}{15\,s_j^2} + \lambda \left\|
            \frac{C_k}{\|C_k\|_F} - \frac{P_k}{\|P_k\|_F} \right\|_F ,
        \qquad (C_k)_{ij} = c(x_i)^\top c(x_j), \quad (P_k)_{ij} = \kappa(x_i, x_j) .

    The first term is (1 − R²) / 15: λ means on all data what it means on MNIST, whose pixels have a
    variance of about 1/15. With ``Stack(input_scaling=False)`` and with a custom network it is the
    paper's mean squared error. By default the second term leaves out both diagonals.

    After `fit`, `transform` approximates the map φ into kernel space and `inverse_transform` the
    map back. The n × n Gram matrix is never needed, and the model holds no row of the data.

    Parameters
    ----------
    n_components : int, default=500
        N_c, the width of the code; 500 as in the paper.
    kernel : str, callable, Gaussian-process kernel or Kernel, default="rbf"
        Name of a kernel of scikit-learn's ``pairwise_kernels``; "pck", the Probabilistic Cluster
        Kernel of the paper; "forest"; a function ``(X, Y) -> Gram`` of two arrays of rows; an
        object of ``sklearn.gaussian_process.kernels``; or a kernel of `dkae.kernels`, which is not
        fitted again if it is fitted. A Gram matrix is passed to `fit`.
    gamma : {"median", "scale"}, float or None, default="median"
        γ of a kernel by name that has one; see `dkae.kernels.choose_gamma`.
    network : Stack, torch.nn.Module or callable, optional
        What learns: by default a `dkae.networks.Stack()`, fully connected layers there and back. Or
        a module with ``encode`` and ``decode``, which is copied and never changed; or a factory
        ``(shape, n_components, generator)``; see `dkae.networks.protocol`. With these X may have
        more than two dimensions.
    alignment : str or callable, default="offdiagonal"
        How far the Gram of the codes is from that of the kernel: "frobenius" is L_c of Eq. 6,
        "offdiagonal" the same without the diagonals; "centered", "logdet", "von_neumann",
        "jensen_renyi" and "bures" are those of `dkae.alignment`; or a function
        ``(code_gram, prior_gram) -> scalar`` of torch tensors.
    alignment_weight : float, default=0.1
        λ in [0, 1]: 0 is a plain autoencoder, 1 only aligns.
    standardize : bool, default=False
        Whether network *and* kernel see each feature with mean 0 and variance 1. Codes decode to
        the units of X either way.
    missing : {"error", "mask"}, default="error"
        Whether X may have missing values, NaN. With "mask", network and kernel see the feature's
        mean in their place (a kernel that takes gaps sees them), the loss leaves them out, and
        reconstructions fill them in.
    batch_size : int, default=200
        k, at most the number of rows. Several processes share it.
    max_iter : int, default=40
        Epochs of training end to end; 0 leaves it out.
    decoder_max_iter : int, default=10
        Epochs in which the decoder alone is trained in the end, with weights of its own, on the
        reconstruction only; the codes stay as they are. Its learning rate is half of the largest. 0
        switches it off: tied weights then stay tied.
    pretrain_max_iter : int, default=0
        Epochs of layer-wise pretraining of each layer; 0 switches it off.
    steps_per_epoch : {"auto", "samples", "pairs"} or int, default="auto"
        Batches of an epoch: n/k, the paper's (n/k)², or a fixed number. "auto" is n/10, between 25
        and 100.
    optimization : Optimization, optional
        Optimizer, learning rate, schedule and clipping; see `dkae.training.Optimization`, whose
        defaults are Adam with at most 0.002 on a one-cycle schedule.
    input_noise : float, default=0.0
        After pretraining the encoder sees each row with Gaussian noise of a random standard
        deviation up to this; the decoder must restore the clean row, and the prior is that of the
        clean row. In the units of X, or in standard deviations with `standardize`.
    augment : {"jitter", "mixup", "images"} or callable, optional
        Rows that cost nothing: half of what the network sees are views of rows, with the kernel
        evaluated at the views; the decoder restores the view. An object of `dkae.augmentation`, its
        name, or a function ``(rows, rng) -> rows`` of rows as the network sees them and a NumPy
        generator. Needs a kernel that can be evaluated at new rows. Costs the kernel of a pool of
        views, which is drawn anew after five passes.
    validation_fraction : float, default=0.0
        Share of the rows, 10,000 at most, that nothing is fitted to: they are evaluated after each
        epoch, for ``callbacks=[EarlyStopping()]`` and for you.
    callbacks : list, optional
        Objects that are called on phases, epochs and steps; see `dkae.training.Callback`.
    cache_bytes : int, optional
        Most memory for features of all rows, which some kernels keep ("pck", "forest",
        transformers); those of each batch are computed anew if it would take more. None is a
        quarter of the memory of the machine.
    device : str or torch.device, default="auto"
        Where the network runs: "auto" takes a GPU if there is one; else as torch spells it, such
        as "cpu" or "cuda:0".
    warm_start : bool, default=False
        Whether `fit` goes on from the present weights, with the present kernel and units, if there
        are any.
    random_state : int, RandomState or None, default=None
        Seed of weights, batches and noise. With a fixed one, results are bit-identical on one
        machine with the same number of threads.
    verbose : int, default=0
        0 is silent, 1 shows a progress bar, or a line now and then, through the logger "dkae", if
        standard error is no terminal.

    Attributes
    ----------
    network_ : torch.nn.Module
        The trained network.
    kernel_ : Kernel or None
        The fitted kernel; None after ``fit(X, gram=P)`` with a matrix.
    kernel_scale_ : float
        Factor between inner products of codes and the kernel, which the loss leaves open.
    alignment_, centered_alignment_, r2_ : float
        A(C, P), its centred form (CKA), and R² of the reconstructions; on 512 training rows. `fit`
        warns if codes are nearer to a constant kernel than to theirs, or if R² is below 0.
    history_ : list of dict
        One record for each epoch: phase, epoch, and the loss with both of its terms on the training
        batches and on the held-out rows. A phase that only reconstructs has no alignment loss: the
        kernel is not evaluated for it.
    steps_per_epoch_ : int
        Batches of an epoch.
    n_iter_ : int
        Epochs of training end to end.
    center_, scale_, fill_ : array or None
        The units of `standardize`, and what replaces gaps in them.
    n_components_, row_shape_, n_features_in_, feature_names_in_
        Width of the code, shape of a row, and as in scikit-learn.

    See Also
    --------
    InvertibleNystroem : Codes computed from kernel values with landmark rows.
    KernelPCA : The exact map, from all training rows.

    References
    ----------
    M. Kampffmeyer, S. Løkse, F. M. Bianchi, R. Jenssen, L. Livi: Deep Kernelized Autoencoders,
    Scandinavian Conference on Image Analysis, 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dkae import DeepKernelizedAutoencoder
    >>> X = load_digits().data / 16
    >>> model = DeepKernelizedAutoencoder(32, max_iter=5, random_state=0).fit(X)
    >>> codes = model.transform(X)
    >>> codes.shape, model.inverse_transform(codes).shape
    ((1797, 32), (1797, 64))
    """

    def __init__(
        self,
        n_components: int = 500,
        *,
        kernel: Any = "rbf",
        gamma: str | float | None = "median",
        network: Any = None,
        alignment: Any = "offdiagonal",
        alignment_weight: float = 0.1,
        standardize: bool = False,
        missing: str = "error",
        batch_size: int = 200,
        max_iter: int = 40,
        decoder_max_iter: int = 10,
        pretrain_max_iter: int = 0,
        steps_per_epoch: str | int = "auto",
        optimization: Optimization | None = None,
        input_noise: float = 0.0,
        augment: Any = None,
        validation_fraction: float = 0.0,
        callbacks: Any = None,
        cache_bytes: int | None = None,
        device: Any = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.network = network
        self.alignment = alignment
        self.alignment_weight = alignment_weight
        self.standardize = standardize
        self.missing = missing
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.decoder_max_iter = decoder_max_iter
        self.pretrain_max_iter = pretrain_max_iter
        self.steps_per_epoch = steps_per_epoch
        self.optimization = optimization
        self.input_noise = input_noise
        self.augment = augment
        self.validation_fraction = validation_fraction
        self.callbacks = callbacks
        self.cache_bytes = cache_bytes
        self.device = device
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # --- training ----------------------------------------------------------------------------

    def fit(self, X: Any, y: object = None, *, gram: Any = None, checkpoint: Any = None) -> Self:
        """Learn the map and its inverse from the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, array of rows or iterable of batches
            Training rows, (n_samples, n_features); with a custom network also of shape (n_samples,
            ...). Rows of a sparse matrix become dense a batch at a time. An *array of rows* is
            anything with ``shape``, ``dtype`` and ``__getitem__`` of a slice or of ascending row
            numbers, such as a NumPy memmap of any type, a Zarr array or an HDF5 dataset: its rows
            are read a batch at a time, after one pass over all of them, and checked as they are
            read; `dkae.RowArray` also scales them. An iterable of batches, such as a torch
            ``DataLoader``, gives rows, ``(rows,)`` or ``(rows, labels)``; the first 20,000 rows
            stand for all where all would be needed.
        y : array-like of shape (n_samples,), optional
            Labels, which reach the `fit` of the kernel: kernels that are made of labels use them,
            all others ignore them.
        gram : array of shape (n_samples, n_samples) or Gram, optional
            Gram matrix of the rows of X, used instead of `kernel`: an array; or any
            `dkae.grams.Gram`, such as ``kernel.on(X)`` of a fitted kernel. Of a NumPy memmap only
            the blocks of the batches are read, and one of 512 rows to check it.
        checkpoint : path, optional
            File that keeps the state of the training, written when a phase begins, once a minute,
            and when SIGINT, SIGTERM or SIGHUP ends the process (if `fit` runs in the main thread).
            If it exists, training goes on from it, to the very result of an unbroken fit; the
            one before it, ``checkpoint.previous``, is taken if it is damaged. `max_iter` and
            `decoder_max_iter` may be larger then, with ``learning_rate="constant"``. A path is for
            one fit, not for a search. Once the model is saved, `dkae.training.remove_checkpoint`
            removes both.
        """
        kind = LoaderInput if is_loader(X) else FitInput
        is_warm = check_boolean("warm_start", self.warm_start) and self.__sklearn_is_fitted__()
        return self._fit(kind(X, y, gram, checkpoint), is_warm=is_warm)

    def partial_fit(self, X: Any, y: object = None, *, gram: Any = None) -> Self:
        """Take one pass of steps over the rows: each is in one batch.

        The first call also fits the kernel and builds the network, from the rows that it gets.
        Later calls go on from the present weights, also after `fit` and after a model was loaded,
        and leave kernel and units as they are. The learning rate is that of "endless", whatever
        `optimization` says: the number of steps to come is unknown. The optimizer goes on from call
        to call, but no model file keeps it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, at least two; or an array of rows, as in `fit`.
        y : array-like of shape (n_samples,), optional
            Labels, for the `fit` of the kernel at the first call.
        gram : array of shape (n_samples, n_samples) or Gram, optional
            Gram matrix of these rows, if the model has no kernel.
        """
        is_warm = self.__sklearn_is_fitted__()
        former = (self.history_, self._continued) if is_warm else ([], None)
        return self._fit(PartInput(X, y, gram, *former), is_warm=is_warm)

    def _fit(self, fit_input: FitInput, *, is_warm: bool) -> Self:
        with unchanged_on_failure(self), mentioning_masks(), float32_math():
            settings = fit_input.settings(Settings.of(self))
            callbacks = [*listeners_of(self.callbacks, self.verbose), *fit_input.callbacks()]
            device = choose_device(self.device)
            with joined(device) as processes:
                rows, seed = self._check_input(fit_input, processes, is_warm=is_warm)
                fraction = settings.validation_fraction
                data = self._prepare(fit_input, rows, seed, fraction=fraction, is_warm=is_warm)
                data = data._replace(views=self._views(data, settings))
                network = self._network_for(data, settings)
                source = fit_input.source(data, settings, device, processes, fill=self.fill_)
                with fit_input.keeping(network, data, settings) as kept:
                    outcome = self._train(network, data, settings, source, [*callbacks, *kept])
                quality = self._store(network, data, fit_input, outcome)
        return self._finish(outcome, quality if fit_input.is_last else None)

    # --- the steps of fit --------------------------------------------------------------------

    def _views(self, data: TrainingData, settings: Settings) -> Views | None:
        """Return how rows are varied, if they are."""
        augment = make_augmentation(settings.augment)
        if augment is None:
            return None
        kernel = data.prior.kernel
        if kernel is None or not kernel.knows_new_rows or kernel is not self.kernel_:
            what = kernel or "a Gram matrix"
            raise ValueError(
                f"augment={self.augment!r} needs the kernel at new rows, and the model has {what}, "
                "with values for known rows only: leave augment out, or pass a kernel"
            )
        return Views(augment, partial(self._present_prior, gram=None))

    def _network_for(self, data: TrainingData, settings: Settings) -> nn.Module:
        """Return the network to train: a new one, or a copy of the present one."""
        n_components = check_integer("n_components", self.n_components, at_least=1)
        rows = np.asarray(self._without_gaps(data.rows[:2]))
        if data.known is None:  # the model keeps its own until training has succeeded
            network: nn.Module = copy.deepcopy(self.network_)
        else:
            generator = torch.Generator().manual_seed(data.seed)
            given = Stack() if self.network is None else self.network
            network = build_network(given, data.known, n_components, generator)
            with seeded(data.seed + 1):  # lazy modules draw their weights at the first rows
                check_network(network, rows, n_components)
        self._check_plan(network, data, settings)
        if settings.decoder_max_iter:
            check_decoder(network, rows)
        return network

    def _check_plan(self, network: nn.Module, data: TrainingData, settings: Settings) -> None:
        """Raise if the encoder would stay as it was drawn; warn of codes that are too narrow."""
        if settings.alignment_weight > 0 and settings.max_iter:
            check_width(self.alignment, self.n_components, min(self.batch_size, len(data.rows)))
        is_trained = data.known is None or isinstance(self.network, nn.Module)
        if not (is_trained or settings.max_iter or settings.pretrain_max_iter):
            raise ValueError(
                "max_iter=0 and pretrain_max_iter=0 leave the encoder, or layers of it, untrained: "
                "set one of them to at least 1, or pass a trained network, network=model.network_"
            )

    def _train(
        self,
        network: nn.Module,
        data: TrainingData,
        settings: Settings,
        source: Source,
        callbacks: list[Any],
    ) -> History:
        phases = plan_phases(network, settings)
        n_steps = source.n_steps * sum(phase.n_epochs for phase in phases)
        LOGGER.info("%s: %s, %s, %d steps", type(self).__name__, *self._parts(network), n_steps)
        self.steps_per_epoch_ = source.n_steps
        # For dropout and its like. Our own networks have none, and fits in threads need not wait.
        is_deterministic = getattr(network, "is_deterministic", False)
        with seeded(None if is_deterministic else data.seed + 2):
            return train(network, phases, source, settings, callbacks)

    def _store(
        self, network: nn.Module, data: TrainingData, fit_input: FitInput, outcome: History
    ) -> Quality:
        """Store the trained parts, and measure the fit."""
        self.network_, self.n_components_ = network, int(self.n_components)
        self.history_, self._continued = fit_input.joined(outcome.records), fit_input.continued
        self.n_iter_ = sum(record["phase"] == FINE_TUNING for record in outcome.records)
        self._stored_kernel_values = None  # of a file that this model may have come from
        unit = getattr(network, "unit", 1.0)
        return self._measure(data, unit.cpu().numpy() if isinstance(unit, torch.Tensor) else unit)

    # --- the map -----------------------------------------------------------------------------

    def _encode(self, rows: Any) -> Any:
        return encode_rows(self.network_, self._without_gaps(rows))

    def _decode(self, codes: Any) -> Any:
        return decode_rows(self.network_, codes)

    @property
    def _takes_any_shape(self) -> bool:
        """Whether rows may have any shape: custom networks decide."""
        return not getattr(self.network, "takes_vectors", self.network is None)

    @property
    def _resolved(self) -> str:
        budget = f"{len(self.history_)} epochs of {self.steps_per_epoch_} steps"
        return ", ".join([*self._parts(self.network_), budget])

    def _parts(self, network: nn.Module) -> tuple[str, str]:
        return summary_of(network), str(self.kernel_ or "a Gram matrix")

    def _make_part(self, name: str) -> None:
        super()._make_part(name)
        if name == "network" and self.network is None:
            self.network = Stack()
        if name == "optimization" and self.optimization is None:
            self.optimization = Optimization()
        if name == "augment":
            self.augment = make_augmentation(self.augment)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the network as it is on the CPU: the reader may have no GPU."""
        state: dict[str, Any] = dict(super().__getstate__())
        network = state.get("network_")
        if network is not None and next(network.parameters()).device.type != "cpu":
            state["network_"] = copy.deepcopy(network).cpu()
        return state
