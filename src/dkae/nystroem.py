"""InvertibleNystroem: codes computed from kernel values with landmark rows, and a way back."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.metaestimators import available_if

from dkae._support.arrays import check_magnitude, product
from dkae._support.checks import (
    check_boolean,
    check_integer,
    shown,
    unchanged_on_failure,
    warn_caller,
)
from dkae._support.devices import choose_device, float32_math
from dkae._support.processes import Processes, joined
from dkae.decoders import is_trained, make_decoder
from dkae.fit_input import FitInput, LoaderInput, PartInput, TrainingData
from dkae.grams import Floats, Ids, sample_ids
from dkae.kernel_map import LOGGER, KernelMap
from dkae.kernels import Kernel, NystroemFeatures
from dkae.linear_path import check_width, choose_width, make_path
from dkae.metrics.quality import Quality
from dkae.networks import learn_scaling, summary_of
from dkae.preprocessing import mentioning_masks
from dkae.statistics import Statistics
from dkae.training.callbacks import History
from dkae.training.loaders import is_loader
from dkae.training.phases import Settings
from dkae.training.progress import listeners_of

__all__ = ["InvertibleNystroem"]

#: Landmark rows by default, or twice the width of the code.
N_LANDMARKS = 1000
#: Numbers (256 MB), and rows, that the map and a closed form are computed from, at most.
N_FIT_NUMBERS, N_FIT_ROWS = 2**26, 20_000


def _learns_in_parts(model: InvertibleNystroem) -> bool:
    decoder = model.decoder
    if not (decoder in ("auto", "mlp") if isinstance(decoder, str) else is_trained(decoder)):
        raise AttributeError(
            f"decoder={shown(decoder)} learns from all rows at once, and partial_fit needs one "
            "that learns in steps: set decoder='mlp' and fit anew"
        )
    return True


class InvertibleNystroem(KernelMap):
    r"""An explicit, invertible feature map for any kernel, computed from landmark rows.

    With the kernel values :math:`\kappa(L, x)` of a row with m landmark rows L, the code is

    .. math:: c(x) = \bigl(W^\top \kappa(L, x) - w_0,\; U^\top (x - \mu)\bigr), \qquad
        W = K^{-1/2} V ,

    with :math:`K = \kappa(L, L)` and V the leading directions of the Nyström features
    :math:`K^{-1/2} \kappa(L, x)` of the training rows: no other N_c directions have larger inner
    products. The second part, a linear path, keeps what the kernel says too little about to
    reconstruct rows; it may be empty, and is so faint that it hardly changes inner products. A
    decoder learns the way back.

    It needs a kernel that can be evaluated at new rows, and it holds its landmark rows. A kernel
    that is only a Gram matrix, or costly to evaluate, is for `DeepKernelizedAutoencoder`.

    Parameters
    ----------
    n_components : int, default=100
        N_c, the width of the code; 100 as in scikit-learn's ``Nystroem``.
    kernel, gamma
        The kernel, as in `DeepKernelizedAutoencoder`.
    n_landmarks : int, optional
        m, landmark rows drawn at random from the training rows; 1,000 by default, or 2 N_c if that
        is more, and at most all.
    center : bool, default=False
        Whether the mean of the training rows is the origin of kernel space, as in `KernelPCA`;
        inner products of codes are the centred kernel then. If not, :math:`w_0 = 0`.
    n_linear : int, optional
        Least width of the linear path, at most N_c: coordinates that the kernel has no use for
        belong to the path too. By default the one with the least loss of Eq. 8 on
        held-out rows.
    decoder : {"auto", "ridge", "kernel_ridge", "mlp"} or regressor, default="auto"
        The way back: a closed form ("ridge", or "kernel_ridge" with landmarks of its own); "mlp",
        which starts as ridge regression and is trained; or any multi-output regressor. "auto" is
        "kernel_ridge" up to 8,000 rows, and "mlp" for more. `dkae.decoders` has their parameters.
    standardize : bool, default=False
        Whether kernel, path and decoder see each feature with mean 0 and variance 1. Codes decode
        to the units of X either way.
    missing : {"error", "mask"}, default="error"
        Whether X may have missing values, NaN, which count as the mean of their feature (a kernel
        that takes gaps sees them), and come back filled in.
    callbacks : list, optional
        Objects that are called while a decoder is trained; see `dkae.training.Callback`.
    cache_bytes, device, verbose
        As in `DeepKernelizedAutoencoder`.
    warm_start : bool, default=False
        Whether `fit` keeps the present codes, if there are any, and goes on with the decoder.
    random_state : int, RandomState or None, default=None
        Seed of landmarks and decoder.

    Attributes
    ----------
    landmarks_ : array of shape (n_landmarks, n_features)
        L, as the kernel sees them.
    projection_, offset_ : arrays of shape (n_landmarks, n_kernel) and (n_kernel,)
        W and w₀.
    linear_path_, linear_center_ : arrays of shape (n_features, n_linear) and (n_features,)
        U and μ.
    decoder_ : regressor
        The fitted decoder.
    kernel_, kernel_scale_, alignment_, centered_alignment_, r2_
        As in `DeepKernelizedAutoencoder`.
    history_ : list of dict
        One record for each epoch of a trained decoder.

    See Also
    --------
    DeepKernelizedAutoencoder : Codes learned by a network, which holds no row.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dkae import InvertibleNystroem
    >>> X = load_digits().data / 16
    >>> model = InvertibleNystroem(32, random_state=0).fit(X)
    >>> codes = model.transform(X)
    >>> codes.shape, model.inverse_transform(codes).shape
    ((1797, 32), (1797, 64))
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: Any = "rbf",
        gamma: str | float | None = "median",
        n_landmarks: int | None = None,
        center: bool = False,
        n_linear: int | None = None,
        decoder: Any = "auto",
        standardize: bool = False,
        missing: str = "error",
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
        self.n_landmarks = n_landmarks
        self.center = center
        self.n_linear = n_linear
        self.decoder = decoder
        self.standardize = standardize
        self.missing = missing
        self.callbacks = callbacks
        self.cache_bytes = cache_bytes
        self.device = device
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # --- training ----------------------------------------------------------------------------

    def fit(self, X: Any, y: object = None, *, gram: Any = None, checkpoint: Any = None) -> Self:
        """Compute the map from the rows of X, and learn its inverse.

        Parameters
        ----------
        X : array-like, sparse matrix, array of rows or iterable of batches
            Training rows, as in `DeepKernelizedAutoencoder.fit`. The map and a closed form are
            computed from a sample of 20,000 at most.
        y : array-like of shape (n_samples,), optional
            Labels, for kernels that are made of labels.
        gram : Gram, optional
            The Gram of the rows of X by a fitted kernel, ``kernel.on(X)``, used instead of
            `kernel`.
        checkpoint : path, optional
            File that keeps the state of a decoder that is trained, as in
            `DeepKernelizedAutoencoder.fit`.
        """
        kind = LoaderInput if is_loader(X) else FitInput
        is_warm = check_boolean("warm_start", self.warm_start) and self.__sklearn_is_fitted__()
        return self._fit(kind(X, y, gram, checkpoint), is_warm=is_warm)

    @available_if(_learns_in_parts)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: object = None, *, gram: Any = None) -> Self:
        """Compute the map from the first rows; let the decoder take one pass over these rows.

        The map stays what the first call, or `fit`, has made it. The decoder must be one that is
        trained: "mlp", which "auto" is here. Its learning rate is that of "endless".

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, at least two; or an array of rows, as in `fit`.
        y, gram
            As in `fit`, for the first call.
        """
        is_warm = self.__sklearn_is_fitted__()
        former = (self.history_, self._continued) if is_warm else ([], None)
        return self._fit(PartInput(X, y, gram, *former), is_warm=is_warm)

    def _fit(self, fit_input: FitInput, *, is_warm: bool) -> Self:
        with unchanged_on_failure(self), mentioning_masks(), float32_math():
            device = choose_device(self.device)
            with joined(device) as processes:
                rows, seed = self._check_input(fit_input, processes, is_warm=is_warm)
                decoder = self._decoder_for(fit_input, len(rows), seed, is_warm=is_warm)
                settings = self._settings_for(decoder, fit_input, len(rows))
                fraction = 0.0 if settings is None else settings.validation_fraction
                data = self._prepare(fit_input, rows, seed, fraction=fraction, is_warm=is_warm)
                if not (is_warm and hasattr(decoder, "network_")):  # which goes on
                    self._learn_from_sample(decoder, data, is_warm=is_warm)
                outcome = History()
                if settings is not None:
                    outcome = self._train(decoder, data, settings, fit_input, processes, device)
                quality = self._store(decoder, data, fit_input, outcome)
        return self._finish(outcome, quality if fit_input.is_last else None)

    # --- the steps of fit --------------------------------------------------------------------

    def _decoder_for(self, fit_input: FitInput, n_rows: int, seed: int, *, is_warm: bool) -> Any:
        """Return the decoder to fit; one of the kind of the present one goes on from it."""
        present: Any = self.decoder_ if is_warm else None
        wanted = self.decoder
        if isinstance(wanted, str) and wanted == "auto":
            if fit_input.parts and not is_trained(present):
                wanted = "mlp"
            elif present is not None:
                wanted = present
            if is_warm and wanted is not present:
                warn_caller(
                    f"{type(present).__name__} learns from all rows at once: {fit_input.parts} "
                    "replaces it by a decoder that learns in steps, from these rows on. Set "
                    "decoder='mlp' before fit to keep what fit has learned"
                )
        decoder = make_decoder(wanted, n_rows, seed)
        if fit_input.parts and not is_trained(decoder):
            raise ValueError(
                f"decoder={type(decoder).__name__} learns from all rows at once, and "
                f"{fit_input.parts} needs one that learns in steps: set decoder='mlp' and fit anew"
            )
        if type(decoder) is type(present):
            decoder = copy.deepcopy(present).set_params(**decoder.get_params(deep=False))
        return decoder

    def _settings_for(self, decoder: Any, fit_input: FitInput, n_rows: int) -> Settings | None:
        """Return how to train the decoder; None for a closed form, which takes no callbacks."""
        listeners_of(self.callbacks, self.verbose)
        if is_trained(decoder):
            settings: Settings = decoder.settings(n_rows, self.device)
            if fit_input.parts:
                settings = replace(settings, validation_fraction=0.0)
            return fit_input.settings(settings)
        wishes = {"callbacks": self.callbacks or None, "checkpoint": fit_input.checkpoint}
        for name, wish in wishes.items():
            if wish is not None:
                raise ValueError(
                    f"{name} was passed, but the decoder, {type(decoder).__name__}, is not "
                    f"trained in steps: set decoder='mlp', or leave {name} out"
                )
        return None

    def _learn_from_sample(self, decoder: Any, data: TrainingData, *, is_warm: bool) -> None:
        """Compute the map, unless it goes on, and fit the decoder or start it."""
        at_most = min(N_FIT_ROWS, max(2, N_FIT_NUMBERS // max(1, self.row_shape_[0])))
        ids = np.sort(data.ids)[sample_ids(len(data.ids), at_most)]
        rows = np.ascontiguousarray(data.rows[ids])
        codes = self._encode(rows) if is_warm else self._compute_map(rows, data)
        if is_trained(decoder):
            known = Statistics.of(data.rows, data.ids) if data.known is None else data.known
            decoder.start(codes, rows, known)
        else:
            LOGGER.info("%s: %s, %s, %s, closed form", type(self).__name__, *self._parts(decoder))
            decoder.fit(codes, self._without_gaps(rows))

    def _compute_map(self, rows: Floats, data: TrainingData) -> Any:
        """Compute W, U and μ from rows to train on, and return their codes."""
        assert data.known is not None
        n_components = check_integer("n_components", self.n_components, at_least=1)
        kernel, scaling = self._kernel_for_new_rows(), learn_scaling(data.known)
        seen = self._kernel_part(rows)
        features = self._features(kernel, seen, n_components, data.seed)
        values = features.kernel_values(seen)
        codes = features.fit(seen, values)(seen, values)
        # A missing value lies at the mean.
        scaled = scaling(torch.from_numpy(rows)).nan_to_num(0.0).numpy()
        n_linear = self._width_of_path(kernel, codes, seen, scaled, n_components)
        path = make_path(codes, scaled, n_components, n_linear)
        scale = np.broadcast_to(scaling.scale.numpy(), self.row_shape_)
        self.projection_ = features.projection[:, : path.n_kernel].astype(np.float32)
        self.offset_ = features.offset[: path.n_kernel].astype(np.float32)
        self.linear_path_ = (path.directions / scale[:, None]).astype(np.float32)
        self.linear_center_ = scaling.mean.numpy()
        self.n_components_ = self.projection_.shape[1] + self.linear_path_.shape[1]
        return self._codes(values, rows)

    def _features(
        self, kernel: Kernel, seen: Floats, n_components: int, seed: int
    ) -> NystroemFeatures:
        """Draw the landmarks, and return the features of kernel values with them."""
        wanted = max(N_LANDMARKS, 2 * n_components)
        if self.n_landmarks is not None:
            wanted = check_integer("n_landmarks", self.n_landmarks, at_least=1)
        rng, n = np.random.default_rng(seed), min(len(seen), wanted)
        chosen = np.sort(rng.choice(len(seen), n, replace=False))
        self.landmarks_ = np.ascontiguousarray(seen[chosen])
        center = check_boolean("center", self.center)
        features = NystroemFeatures(kernel, self.landmarks_, n_components, center=center)
        self._values = kernel, features.values
        return features

    def _width_of_path(
        self, kernel: Kernel, codes: Any, seen: Floats, scaled: Floats, n_components: int
    ) -> int:
        if self.n_linear is not None:
            return check_width(self.n_linear, n_components)

        def prior(ids: Ids) -> Floats:
            gram = kernel.gram(seen[ids])
            return KernelCenterer().fit_transform(gram) if self.center else gram

        return choose_width(codes, scaled, prior, n_components, is_smooth=kernel.has_formula)

    def _train(
        self,
        decoder: Any,
        data: TrainingData,
        settings: Settings,
        fit_input: FitInput,
        processes: Processes,
        device: torch.device,
    ) -> History:
        source = fit_input.source(
            data, settings, device, processes, fill=self.fill_, encode=self._encode
        )
        n_steps = source.n_steps * settings.decoder_max_iter
        parts = self._parts(decoder)
        LOGGER.info("%s: %s, %s, %s, %d steps", type(self).__name__, *parts, n_steps)
        callbacks = [*listeners_of(self.callbacks, self.verbose), *fit_input.callbacks()]
        with fit_input.keeping(decoder.network_, data, settings) as kept:
            outcome: History = decoder.learn(source, settings, [*callbacks, *kept])
            return outcome

    def _store(
        self, decoder: Any, data: TrainingData, fit_input: FitInput, outcome: History
    ) -> Quality:
        """Store the fitted parts, and measure the fit."""
        self.decoder_ = decoder
        self.history_, self._continued = fit_input.joined(outcome.records), fit_input.continued
        self.n_iter_ = len(self.history_)
        self._stored_kernel_values = None  # of a file that this model may have come from
        return self._measure(data)

    # --- the map -----------------------------------------------------------------------------

    def _encode(self, rows: Any) -> Any:
        kernel = self._evaluable_kernel()
        if self._values is None or self._values[0] is not kernel:
            self._values = kernel, kernel.towards(self.landmarks_)
        return self._codes(self._values[1](self._kernel_part(rows)), rows)

    def _kernel_part(self, rows: Any) -> Any:
        """Return a chunk of rows as the kernel sees them."""
        check_magnitude(rows, "X")
        return rows if self._evaluable_kernel().takes_missing else self._without_gaps(rows)

    def _codes(self, values: Floats, rows: Any) -> Any:
        """Return the codes of rows whose kernel values with the landmarks are known."""
        codes = product(values, self.projection_) - self.offset_
        if not self.linear_path_.shape[1]:
            return codes
        path = (self._without_gaps(rows) - self.linear_center_) @ self.linear_path_
        return np.hstack([codes, path])

    def _decode(self, codes: Any) -> Any:
        rows = np.asarray(self.decoder_.predict(codes), dtype=np.float32)
        return rows.reshape(len(codes), *self.row_shape_)

    #: A kernel, and its values with the landmarks as a function of rows.
    _values: tuple[Kernel, Any] | None = None

    @property
    def _resolved(self) -> str:
        return ", ".join(self._parts(self.decoder_))

    def _parts(self, decoder: Any) -> tuple[str, str, str]:
        n_linear = self.linear_path_.shape[1]
        path = f" + {n_linear} linear" if n_linear else ""
        codes = f"{len(self.landmarks_)} landmarks, {self.projection_.shape[1]}{path} components"
        network = getattr(decoder, "network_", None)
        back = type(decoder).__name__ if network is None else summary_of(network)
        return codes, str(self.kernel_), back

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_values", None)  # it is made of the kernel and the landmarks
        return state
