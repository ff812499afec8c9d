"""What the three kernel maps share: their kernel, and how good they are.

A kernel map has codes c(x) whose inner products approximate a kernel, and a way back from codes to
rows. A subclass fits itself and maps one chunk of rows in memory there (`_encode`) and back
(`_decode`). Rows enter and leave by `dkae.preprocessing`.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dkae._support.checks import check_integer, draw_seed, warn_caller
from dkae._support.devices import float32_math
from dkae._support.processes import Processes, present, speaks
from dkae.attached_kernel import AttachedKernel
from dkae.decoders import make_decoder
from dkae.fit_input import FitInput, TrainingData
from dkae.grams import (
    FeatureGram,
    Floats,
    Gram,
    Ids,
    check_block,
    finite_float32,
    read_block,
    sample_ids,
)
from dkae.kernels import Kernel, gram_of, is_fitted, make_kernel
from dkae.metrics import Quality, compare_grams
from dkae.networks import learn_scaling
from dkae.preprocessing import Preprocessing, mentioning_masks
from dkae.rows import RowArray, map_rows
from dkae.statistics import Statistics, warn_of_units
from dkae.training.callbacks import History, Record
from dkae.training.distributed import check_same_inputs, check_same_presence, check_same_prior
from dkae.training.loaders import check_loader_wishes

LOGGER = logging.getLogger("dkae")

#: Training rows whose block of the prior is checked before the fit and measured after it.
N_SAMPLE_ROWS = 512


class KernelMap(
    AttachedKernel,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc]
    Preprocessing,
):
    """Base class of the maps."""

    kernel: Any
    gamma: Any
    cache_bytes: int | None
    random_state: Any
    n_components: Any
    decoder: Any

    kernel_: Kernel | None
    kernel_scale_: float
    n_components_: int
    history_: list[Record]
    #: The optimizer of the pass before, for `partial_fit`.
    _continued: dict[str, Any] | None = None

    # --- what a map provides -----------------------------------------------------------------

    @abstractmethod
    def _encode(self, rows: Any) -> Any:
        """Return the codes of one chunk of rows, as the map sees them."""

    @abstractmethod
    def _decode(self, codes: Any) -> Any:
        """Return the rows of one chunk of codes, as the map sees them."""

    @property
    def _resolved(self) -> str:
        """What the parameters came to, for people."""
        return ""

    # --- the map and its inverse -------------------------------------------------------------

    def transform(self, X: Any, *, out: Any = None) -> Any:
        """Return the codes of the rows of X, in float32: the map φ into kernel space.

        Parameters
        ----------
        X : array-like, sparse matrix or array of rows
            Rows; an array of rows is read a part at a time.
        out : array of shape (n_samples, n_components), optional
            Receives the codes part by part, such as a memmap or a Zarr array; it is returned.
        """
        check_is_fitted(self)
        with mentioning_masks(), float32_math():
            rows = self._check_rows(X)
            return map_rows(lambda chunk: self._encode(self._seen(chunk)), rows, out)

    def inverse_transform(self, X: Any, *, out: Any = None) -> Any:
        """Return the rows that the decoder makes of codes: the map φ⁻¹ back to input space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components), or an array of rows
            Codes from `transform`, or other points of code space.
        out : array of shape (n_samples, n_features), optional
            Receives the rows part by part; it is returned.
        """
        check_is_fitted(self)
        codes = self._check_codes(X)
        names = ("codes", "rows")
        return map_rows(
            lambda chunk: self._restored(self._decode(chunk)), codes, out, names, codes.dtype
        )

    def gram(self, X: Any, Y: Any = None) -> Floats:
        """Return the kernel that the codes represent, ``kernel_scale_ * c(x)ᵀ c(y)``.

        This approximates κ(X, Y); Y is X if it is not given.
        """
        codes_x = np.asarray(self.transform(X))
        codes_y = codes_x if Y is None else np.asarray(self.transform(Y))
        with np.errstate(over="ignore", invalid="ignore"):
            gram = np.float32(self.kernel_scale_) * (codes_x @ codes_y.T)
        return finite_float32(gram, "the Gram matrix of the codes of X")

    # --- how good the map is -----------------------------------------------------------------

    def prior_gram(self, X: Any) -> Gram:
        """Return the Gram matrix of the kernel on the rows of X, to be read block by block."""
        check_is_fitted(self)
        return self._present_prior(self._lazily_seen(self._check_rows(X)), None)

    def score(self, X: Any, y: object = None, *, gram: Any = None) -> float:
        r"""Return the centred alignment (CKA) in [0, 1] of the codes with the kernel on X.

        .. math:: A(HCH, HPH), \qquad C_{ij} = c(x_i)^\top c(x_j), \quad P_{ij} = \kappa(x_i, x_j)

        Constant codes score 0, and so do all codes for a constant kernel. Time is O(n²), memory
        is not: the matrices are read tile by tile.

        Use it in ``GridSearchCV`` for parameters of the map: N_c, layers, λ, epochs. **It cannot
        choose γ or the kernel**: each candidate is compared with its own kernel, so the score says
        how well that kernel was learned, not how useful it is. With labels,
        `dkae.metrics.label_alignment_score` chooses a kernel. The paper's A and L_c are
        `dkae.metrics.kernel_alignment` and `dkae.metrics.alignment_loss`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to compare on.
        y : None
            Ignored.
        gram : array of shape (n_samples, n_samples) or Gram, optional
            Gram matrix of these rows; needed if the model was fitted with a matrix.
        """
        check_is_fitted(self)
        prior = self.prior_gram(X) if gram is None else gram_of(gram, self._check_rows(X))
        return self._agreement(np.asarray(self.transform(X)), prior)

    @staticmethod
    def _agreement(codes: Floats, prior: Gram) -> float:
        found = compare_grams(FeatureGram(codes, "codes"), prior, ("codes", prior.name))
        return max(0.0, found.centered_alignment)

    def _measure(self, data: TrainingData, unit: Any = None) -> Quality:
        """Measure the fit on a sample of training rows, with their block of the prior.

        R² counts errors of each feature in units of `unit`: by default, of what decoders learn.
        """
        rows, block = self._sample(data)
        codes = map_rows(self._encode, rows)
        decoded = map_rows(self._decode, codes, None, ("codes", "rows"))
        return self._note_quality(codes, block, rows, decoded, unit)

    def _note_quality(
        self, codes: Floats, block: Floats, rows: Any, decoded: Any, unit: Any = None
    ) -> Quality:
        if unit is None:
            unit = learn_scaling(Statistics.of(rows)).scale.numpy()
        quality = Quality.of(codes, block, rows, decoded, unit)
        self.kernel_scale_, self.r2_ = quality.scale, quality.r2
        self.alignment_ = quality.alignment
        self.centered_alignment_ = quality.centered_alignment
        return quality

    def _sample(self, data: TrainingData) -> tuple[Any, Floats]:
        """Return a few training rows, and their block of the prior."""
        ids = self._sample_ids(data)
        return data.rows[ids], read_block(data.prior, ids)

    def _sample_ids(self, data: TrainingData) -> Ids:
        ids: Ids = np.sort(data.ids[sample_ids(len(data.ids), N_SAMPLE_ROWS)])
        return ids

    def _finish(self, outcome: History, quality: Quality | None) -> Self:
        """Warn of an interruption or a bad fit, and return the model."""
        if outcome.interruption is not None:
            try:
                warn_caller(
                    f"training was interrupted after {len(outcome.records)} finished epochs: the "
                    "model is usable with what it had learned so far",
                    ConvergenceWarning,
                )
            finally:  # also if warnings are errors
                raise outcome.interruption
        if quality is not None and speaks():
            quality.warn_if_bad(getattr(self, "alignment_weight", None))
        return self

    # --- the kernel --------------------------------------------------------------------------

    def _check_input(
        self, fit_input: FitInput, processes: Processes, *, is_warm: bool
    ) -> tuple[Any, int]:
        """Return the rows of the input, checked, and the seed of the fit."""
        check_same_presence(
            processes,
            batches=not fit_input.is_shared,
            fitted=is_warm,
            gram=fit_input.gram,
            y=fit_input.y,
            checkpoint=fit_input.checkpoint,
        )
        if not fit_input.is_shared:
            check_loader_wishes(**{"missing='mask'": self.missing == "mask"})
        if is_warm and self.n_components != self.n_components_:
            raise ValueError(
                f"n_components={self.n_components}, but the map that is to go on has "
                f"{self.n_components_}: set n_components={self.n_components_}, or fit anew with "
                "warm_start=False"
            )
        rows = self._check_rows(fit_input.open(processes, self.random_state), reset=not is_warm)
        if len(rows) < 2:
            raise ValueError(f"X has {len(rows)} row: a fit needs at least 2, pass more rows")
        if fit_input.is_shared and processes.size > 1:
            check_same_inputs(processes, self.get_params(), rows, fit_input.y)
        return rows, processes.first(draw_seed(self.random_state))

    def _prepare(
        self,
        fit_input: FitInput,
        rows: Any,
        seed: int,
        *,
        fraction: float = 0.0,
        is_warm: bool = False,
    ) -> TrainingData:
        """Learn units and kernel from the training rows; return what the map sees.

        Nothing is fitted to the `fraction` of the rows that is held out. If the fit goes on, the
        present units and kernel stay.
        """
        rng = fit_input.rng(seed, present().rank)
        ids, held_out = fit_input.split(len(rows), fraction, rng)
        known = None if is_warm else self._learn_units(Statistics.of(rows, ids))
        seen = self._lazily_seen(rows)
        if known is None:
            prior = self._present_prior(seen, fit_input.gram)
        else:
            prior = self._fit_prior(seen, fit_input.y, fit_input.gram, ids)
            known = known._replace(n_rows=fit_input.n_parts * known.n_rows)
        data = TrainingData(seen, prior, ids, held_out, known, seed, rng, self._seen)
        check_same_prior(present(), prior)
        self._check_prior(data)
        if not fit_input.is_shared:
            self._kernel_for_new_rows()
        kernel = self.kernel_ if fit_input.gram is None else None
        if known is not None and kernel is not None and kernel.depends_on_units:
            warn_of_units(known, kernel, getattr(self, "feature_names_in_", None))
        return data

    def _check_prior(self, data: TrainingData) -> None:
        """Check the block of a few training rows."""
        check_block(read_block(data.prior, self._sample_ids(data)), data.prior.name)

    def _fit_prior(self, rows: Any, y: object, gram: Any, ids: Ids) -> Gram:
        """Fit the kernel to the rows to train on, and return the Gram matrix of all rows."""
        if gram is not None:
            prior = self._given_prior(gram, rows)
            self.kernel_ = prior.kernel
            return prior
        kernel = self._unfitted_kernel()
        seen = self._kernel_rows(rows, kernel)
        if not is_fitted(kernel):
            if len(ids) == len(seen):
                kernel.fit(seen, y)
            else:
                ids = np.sort(ids)
                part: Any = seen.chosen(ids) if isinstance(seen, RowArray) else seen[ids]
                kernel.fit(part, None if y is None else np.asarray(y)[ids])
        self.kernel_ = kernel
        return self._gram_on(kernel, seen)

    def _present_prior(self, rows: Any, gram: Any) -> Gram:
        if gram is not None:
            return self._given_prior(gram, rows)
        kernel = self._evaluable_kernel()
        return self._gram_on(kernel, self._kernel_rows(rows, kernel))

    def _given_prior(self, gram: Any, rows: Any) -> Gram:
        """Return a Gram that was passed, with its kernel if that has its entries on the rows."""
        kernel = getattr(gram, "kernel", None)
        return gram_of(gram, rows if kernel is None else self._kernel_rows(rows, kernel))

    def _kernel_for_new_rows(self) -> Kernel:
        """Return the kernel if it can be evaluated at rows that it has not seen."""
        kernel = self.kernel_
        if kernel is not None and kernel.knows_new_rows:
            return kernel
        what = "a Gram matrix" if kernel is None else f"{kernel}, which has values for known rows"
        raise ValueError(
            f"new rows need a kernel that can be evaluated, and the model has {what}: pass such a "
            "kernel, or use DeepKernelizedAutoencoder with an array of rows, which needs none"
        )

    def _unfitted_kernel(self) -> Kernel:
        return make_kernel(self.kernel, gamma=self.gamma, random_state=self.random_state)

    def _evaluable_kernel(self) -> Kernel:
        if self.kernel_ is None:
            raise ValueError(
                "the model has no kernel that it could evaluate on X, because it was fitted with a "
                "Gram matrix or loaded without its kernel: pass gram=, the Gram matrix of these "
                "rows, or restore the kernel with attach_kernel(kernel)"
            )
        return self.kernel_

    def _kernel_rows(self, rows: Any, kernel: Kernel) -> Any:
        """Return the rows as the kernel sees them: with gaps only if it takes them."""
        return rows if kernel.takes_missing else self._filled(rows)

    def _gram_on(self, kernel: Kernel, rows: Any) -> Gram:
        if self.cache_bytes is None:
            return kernel.on(rows)
        budget = check_integer("cache_bytes", self.cache_bytes, at_least=0)
        return kernel.on(rows, cache_bytes=budget)

    def _probe_rows(self) -> Any:
        """Return a few rows that depend on nothing but the model, as the kernel sees them.

        They are decoded from random codes: no row of the data.
        """
        n = 8
        shape = (n, self.n_components_)
        codes = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        # As large as those of a kernel with κ(x, x) = 1.
        codes /= np.sqrt(np.float32(max(abs(self.kernel_scale_), 1e-12) * self.n_components_))
        # Nearer and nearer to the first: some pair is near enough for any bandwidth to tell.
        codes[1:] = codes[0] + (codes[1:] - codes[0]) * 0.25 ** np.arange(n - 1)[:, None]
        return map_rows(self._decode, codes, None, ("codes", "rows"))

    # --- the scikit-learn contract -----------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the map and of its parts, such as ``kernel__gamma``.

        A part that is given by name, or by default, becomes an object first.
        """
        for name in {key.partition("__")[0] for key in params if "__" in key}:
            if name not in params:
                self._make_part(name)
        super().set_params(**params)
        return self

    def _make_part(self, name: str) -> None:
        """Replace the name of a part by the object that it stands for."""
        if name == "kernel" and isinstance(self.kernel, str):
            self.kernel, self.gamma = self._unfitted_kernel(), "median"
        if name == "decoder" and isinstance(getattr(self, name, None), str):
            if self.decoder == "auto":
                raise ValueError(
                    "decoder='auto' has no parameters of its own: set decoder to 'ridge', "
                    "'kernel_ridge' or 'mlp' first"
                )
            self.decoder = make_decoder(self.decoder, 0)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        described = str(super().__repr__(N_CHAR_MAX))
        return f"{described}  # {self._resolved}" if self.__sklearn_is_fitted__() else described

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_components_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Rows of any other type are converted to the first of these, with no float64 copy.
        tags.transformer_tags.preserves_dtype = [np.dtype(t).name for t in self._dtypes]
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mask"
        return tags
