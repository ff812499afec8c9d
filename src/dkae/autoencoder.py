"""DeepKernelizedAutoencoder: the scikit-learn face of the network and its training."""

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from dkae._support.arrays import naming
from dkae._support.checks import check_integer, check_takes
from dkae._support.processes import speaks
from dkae._support.states import StateMixin, check_finite_number
from dkae._support.warning import unchanged_on_failure, warn_caller
from dkae.fitting import fit_rows
from dkae.grams import Floats, Gram, finite_float32
from dkae.kernels import Kernel, gram_of
from dkae.kernels.attaching import N_PROBES, HasKernel
from dkae.kernels.formulas import EvaluatedRows
from dkae.metrics.comparison import compare_grams
from dkae.metrics.quality import Quality
from dkae.networks import (
    Autoencoder,
    Factory,
    KernelLayer,
    KernelLayerNetwork,
    Scaling,
    decode_rows,
    encode_rows,
    scaled,
)
from dkae.rows import RowArray, check_row_array, is_row_array, row_array
from dkae.streaming import fit_loader, fit_part, is_loader
from dkae.training import Record
from dkae.training.building import is_own

__all__ = ["DeepKernelizedAutoencoder"]


class DeepKernelizedAutoencoder(
    StateMixin,
    HasKernel,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""An explicit, invertible feature map for any kernel.

    An autoencoder whose codes c(x) have inner products that align with a kernel, while its decoder
    gives x back. The loss of a batch of k rows is that of Eq. 8 of the paper, with each feature in
    units of a scale s_j:

    .. math::
        L = \frac{1 - \lambda}{kd} \sum_{i=1}^{k} \sum_{j=1}^{d}
            \frac{(x_{ij} - \tilde x_{ij})^2}{15\,s_j^2} + \lambda \left\|
            \frac{C_k}{\|C_k\|_F} - \frac{P_k}{\|P_k\|_F} \right\|_F ,
        \qquad (C_k)_{ij} = c(x_i)^\top c(x_j), \quad (P_k)_{ij} = \kappa(x_i, x_j) .

    The first term is (1 − R²) / 15: λ means on all data what it means on MNIST, whose pixels have a
    variance of about 1/15. With ``standardize=False`` it is the paper's mean squared error. By
    default the second term leaves out both diagonals.

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
        `dkae.kernels`, which is not fitted again if it is fitted. A Gram is passed to `fit`. The
        kernel sees rows as they are, whatever `standardize` is.
    gamma : {"median", "scale"}, float or None, default="median"
        γ of the kernels that have one; see `dkae.kernels.bandwidth`. None is 1 / n_features.
    degree, coef0 : float, default=3 and 1
        Parameters of the polynomial and the sigmoid kernel.
    kernel_params : mapping, optional
        Keyword arguments of a callable kernel, or parameters of one that is given by name; they go
        before `gamma`, `degree` and `coef0`.
    alignment : str or callable, default="offdiagonal"
        How far the Gram of the codes is from that of the kernel: "frobenius" is L_c of Eq. 6,
        "offdiagonal" the same without the diagonals; "centered", "logdet", "von_neumann",
        "jensen_renyi" and "bures" are those of `dkae.alignment`; or a function
        ``(code_gram, prior_gram) -> scalar`` of torch tensors.
    alignment_weight : float, default=0.1
        λ in [0, 1]: 0 is a plain autoencoder, 1 only aligns.
    distillation : float, default=0.0
        Weight, beside L_c, of the distance ‖C − T‖² / ‖T‖² of codes to those of a kernel layer, T,
        in training end to end. It needs blocks of the Gram matrix only.
    network : str, KernelLayerNetwork, torch.nn.Module or callable, default="auto"
        What maps rows to codes and back:

        - "kernel_layer", codes from kernel values with landmark rows. They are computed, by
          Nyström features; the decoder starts as ridge regression and is trained.
          `dkae.networks.KernelLayerNetwork` sets the number of landmarks, how they are chosen, and
          the width of the faint linear path that helps the decoder where the kernel says too
          little of a row. For any kernel that can be evaluated at new rows.
        - "stacked", the paper's kind of network: fully connected layers, there and back. For any
          kernel, also a Gram matrix alone.
        - "auto", the kernel layer for kernels by name and the Probabilistic Cluster Kernel, if λ is
          above 0, `alignment` is "offdiagonal" or "frobenius", and neither pretraining nor
          distillation nor input noise is asked for; "stacked" otherwise.
        - a module with ``encode`` and ``decode``, which is copied and never changed, or a factory
          ``(shape, n_components, generator)`` that builds one for rows of that shape; see
          `dkae.networks`. X may then have more than two dimensions: kernels that have a name see
          its rows flattened, others as they are.
    standardize : {"auto", "features", "shared"} or False, default="auto"
        How rows are scaled for the network, and differences of rows for the loss: each feature by
        its standard deviation, or all by one, after each is centred. "auto" is "shared" where
        features share a unit, as pixels do: the tenth percentile of their ranges is at least a
        tenth of the largest. A module or factory of yours sees rows as they are with "auto".
    missing : {"error", "mask"}, default="error"
        Whether X may have missing values, NaN. With "mask", network and kernel see the feature's
        mean in their place (kernels that can take them see them as they are), the loss leaves them
        out, and reconstructions fill them in.
    hidden_layer_sizes : "auto" or sequence of int, default="auto"
        Widths of the layers between input and code; the decoder has them in reverse. May be empty.
        "auto" is two layers of the largest width h, from 8 to 1,000, with
        d h + h² + h N_c ≤ n (d + N_c). Of a kernel layer, only the decoder has such layers.
    activation, code_activation : str, default="gelu" and "identity"
        Activation of the hidden layers and of the code; for the stack only. The decoder of a kernel
        layer has GELU.
    output_activation : str, default="auto"
        Activation of the reconstruction. "auto" is the sigmoid where all of X lies in [0, 1] and
        reaches beyond 0.5, and the identity elsewhere.
    layer_norm : bool, default=True
        Whether hidden layers of the encoder normalise over their units; for the stack only. The
        decoder of a kernel layer always does.
    linear_path : float, default=0.0
        Weight of a linear path beside the stack, which starts as PCA; 0 for none. For the stack
        only: a kernel layer chooses the width of its own path by the loss.
    tied_weights : bool, default=True
        Whether the decoder uses the transposed weights of the encoder while both are trained. If
        not, it starts from them. For the stack only.
    batch_size : int, default=200
        k, at most the number of rows.
    max_iter : "auto" or int, default="auto"
        Epochs of training end to end; 0 leaves it out. "auto" is 40, and 0 for a kernel layer,
        whose codes are at their best already; if it is trained, its rate is a hundredth.
    steps_per_epoch : {"auto", "samples", "pairs"} or int, default="auto"
        Batches of an epoch: n/k, the paper's (n/k)², or a fixed number. "auto" is n/10, between 25
        and 100.
    pretrain_max_iter : int, default=0
        Epochs of layer-wise pretraining of each layer; 0 switches it off. A kernel layer has none.
    decoder_max_iter : "auto" or int, default="auto"
        Epochs in which the decoder alone is trained in the end, with weights of its own, on the
        reconstruction only; the codes stay what they are. Its learning rate is half of
        `learning_rate_init`, and all of it for a kernel layer. "auto" is 10. 0 switches it off:
        tied weights then stay tied.
    learning_rate : {"onecycle", "cosine", "constant", "endless"}, default="onecycle"
        Schedule of the learning rate. "endless" rises over 50 steps and then falls as
        1 / √(1 + t/1000), however many steps there will be. "onecycle" also moves the first moment
        of "adam" between 0.95 and 0.85, as is usual with it.
    learning_rate_init : float, default=0.002
        The (largest) learning rate of Adam.
    optimizer : "adam" or callable, default="adam"
        A function ``(parameters, lr)`` that returns a torch optimizer is called for each phase.
    max_grad_norm : float, optional
        Gradients are clipped to this norm.
    input_noise : float, default=0.0
        After pretraining the encoder sees each row with Gaussian noise of a random standard
        deviation up to this, in the units of X; the decoder must give back the clean row, and the
        prior is that of the clean row.
    early_stopping : "auto" or bool, default="auto"
        Stop when the validation loss has not fallen by `tol` for `n_iter_no_change` epochs, and
        keep the weights of the best epoch, or those that the decoder had before it was trained
        alone. "auto" does so for a kernel layer with at least 40 rows, whose decoder starts as
        ridge regression and is not to become worse than that.
    validation_fraction : float, optional
        Share of the rows that is held out and evaluated after each epoch. None is 0.1 with early
        stopping and nothing without.
    n_iter_no_change : int, default=10
        Patience of early stopping.
    tol : float, default=1e-4
        Smallest gain that early stopping counts.
    callbacks : list, optional
        Objects that are told of phases, epochs and steps; see `dkae.training.Callback`.
    device : str or torch.device, default="auto"
        Where the network runs: "auto" takes a GPU where there is one; else as torch spells it, such
        as "cpu" or "cuda:0".
    precision : {"float32", "bfloat16"}, default="float32"
        Precision of the network; the losses are always in float32.
    shuffle : {"rows", "chunks"}, default="rows"
        Who is in a batch: any rows, or eight runs of neighbours, which a slow disk reads together.
        If neighbours are alike, as in a file that is sorted by class, "chunks" makes batches less
        diverse, and losses worse.
    cache_bytes : int, optional
        Most memory for features of all rows, which some kernels keep ("pck", "forest",
        transformers); those of each batch are computed anew if it would take more. None is a
        quarter of the memory of the machine.
    engine : {"auto", "single", "distributed"}, default="auto"
        How many processes train together: those that ``torchrun`` has started, if it has, or one.
        `batch_size` is that of all of them.
    compile : bool, default=False
        Whether ``torch.compile`` translates the network first, which takes up to a minute and needs
        a compiler.
    warm_start : bool, default=False
        Whether `fit` goes on from the present weights, with the present kernel and scaling, if
        there are any.
    random_state : int, RandomState or None, default=None
        Seed of weights, landmarks, batches and noise. With a fixed one, results are bit-identical
        on one machine with the same number of threads.
    verbose : int, default=0
        0 is silent, 1 shows a progress bar; where standard error is no terminal, a line now and
        then, through the logger "dkae".
    epoch
        The former name of `steps_per_epoch`.

    Attributes
    ----------
    network_ : torch.nn.Module
        The trained network.
    scaling_ : dkae.networks.Scaling or None
        What stands between rows in the units of X and the network; None where rows go in as they
        are.
    fill_ : array of shape (n_features,) or None
        What the kernel sees in place of missing values, with ``missing="mask"``: the mean of each
        feature.
    kernel_ : Kernel or None
        The fitted kernel; None after ``fit(X, gram=P)`` with a matrix.
    kernel_scale_ : float
        Factor between inner products of codes and the kernel, which the loss leaves open.
    alignment_, centered_alignment_, r2_ : float
        A(C, P), its centred form (CKA), and R² of the reconstructions, with features in the units
        of `scaling_`; on 512 training rows. `fit` warns if codes are nearer to a constant kernel
        than to theirs, or if R² is below 0.
    history_ : list of dict
        One record for each epoch: phase, epoch, and the loss with both of its terms on the training
        batches and, if held out, on the validation part. Where only the reconstruction is trained
        (λ = 0, a layer below the code, the decoder alone), it is the loss, and the training batches
        have no alignment loss: the kernel is not evaluated for them.
    n_iter_ : int
        Epochs of training end to end.
    row_shape_ : tuple of int
        Shape of a row of X.
    n_components_ : int
        Width of the code.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A kernel layer holds landmark rows of the training data: 1,000, or 2 N_c if that is more. With
    ``network="stacked"`` the fitted model holds no training data, unless `kernel` itself does. The
    gamma of the default kernel is chosen on a sample of 1,000 rows.

    `fit` warns if one feature has more than 90 % of the squared distances between rows: a kernel by
    name then hardly sees the others, and ``make_pipeline(StandardScaler(), model)`` is the remedy.

    References
    ----------
    M. Kampffmeyer, S. Løkse, F. M. Bianchi, R. Jenssen, L. Livi: Deep Kernelized Autoencoders,
    Scandinavian Conference on Image Analysis, 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dkae import DeepKernelizedAutoencoder
    >>> X = load_digits().data / 16
    >>> model = DeepKernelizedAutoencoder(32, random_state=0).fit(X)
    >>> codes = model.transform(X)
    >>> codes.shape, model.inverse_transform(codes).shape
    ((1797, 32), (1797, 64))
    """

    network_: nn.Module
    scaling_: Scaling | None
    kernel_: Kernel | None
    kernel_scale_: float
    history_: list[Record]
    n_components_: int
    fill_: Floats | None

    def __init__(
        self,
        n_components: int = 500,
        *,
        kernel: str | Callable[..., Any] | Kernel = "rbf",
        gamma: str | float | None = "median",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        alignment: str | Callable[..., Any] = "offdiagonal",
        alignment_weight: float = 0.1,
        distillation: float = 0.0,
        network: str | nn.Module | Factory | KernelLayerNetwork = "auto",
        standardize: str | bool = "auto",
        missing: str = "error",
        hidden_layer_sizes: str | Sequence[int] = "auto",
        activation: str = "gelu",
        code_activation: str = "identity",
        output_activation: str = "auto",
        layer_norm: bool = True,
        linear_path: float = 0.0,
        tied_weights: bool = True,
        batch_size: int = 200,
        max_iter: str | int = "auto",
        steps_per_epoch: str | int = "auto",
        pretrain_max_iter: int = 0,
        decoder_max_iter: str | int = "auto",
        learning_rate: str = "onecycle",
        learning_rate_init: float = 0.002,
        optimizer: str | Callable[..., Any] = "adam",
        max_grad_norm: float | None = None,
        input_noise: float = 0.0,
        early_stopping: str | bool = "auto",
        validation_fraction: float | None = None,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        callbacks: Sequence[Any] | None = None,
        device: str | torch.device = "auto",
        precision: str = "float32",
        shuffle: str = "rows",
        cache_bytes: int | None = None,
        engine: str = "auto",
        compile: bool = False,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        epoch: str | int = "deprecated",
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alignment = alignment
        self.alignment_weight = alignment_weight
        self.distillation = distillation
        self.network = network
        self.standardize = standardize
        self.missing = missing
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.code_activation = code_activation
        self.output_activation = output_activation
        self.layer_norm = layer_norm
        self.linear_path = linear_path
        self.tied_weights = tied_weights
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.steps_per_epoch = steps_per_epoch
        self.pretrain_max_iter = pretrain_max_iter
        self.decoder_max_iter = decoder_max_iter
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.optimizer = optimizer
        self.max_grad_norm = max_grad_norm
        self.input_noise = input_noise
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.callbacks = callbacks
        self.device = device
        self.precision = precision
        self.shuffle = shuffle
        self.cache_bytes = cache_bytes
        self.engine = engine
        self.compile = compile
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.epoch = epoch

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

        Ctrl-C raises KeyboardInterrupt, as anywhere; the model is usable with what it had learnt so
        far, unless several processes train. Any other failure leaves the model as it was before.

        Parameters
        ----------
        X : array-like, sparse matrix, array of rows, or iterable of batches
            Training rows, at least two, of shape (n_samples, n_features); with a network of yours
            also of shape (n_samples, ...). Rows of a sparse matrix become dense a batch at a time.
            An *array of rows* is anything with ``shape``, ``dtype`` and ``__getitem__`` of a slice
            or of ascending row numbers, such as a NumPy memmap of any type, a Zarr array or an
            HDF5 dataset: its rows are read a batch at a time, after one pass over all of them, and
            checked as they are read; `dkae.RowArray` also scales them. An iterable of batches, such
            as a torch ``DataLoader``, gives rows, ``(rows,)`` or ``(rows, labels)``; the first
            20,000 rows stand for all where all would be needed, and nothing is held out.
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
            Where it exists, training goes on from it, to the very result of an unbroken fit; the
            one before it, ``checkpoint.previous``, is taken if it is damaged. `max_iter` and
            `decoder_max_iter` may be larger then, with ``learning_rate="constant"``. A path is for
            one fit, not for a search. Once the model is saved, `dkae.training.remove_checkpoint`
            removes both.
        pretrained : Autoencoder, optional
            The former way to pass trained layers: use `network`.
        """
        with unchanged_on_failure(self), _saying_what_masks():
            self._check_pretrained(pretrained)
            if is_loader(X):
                interruption, quality = fit_loader(self, X, y, gram, checkpoint)
            else:
                interruption, quality = fit_rows(self, X, y, gram, checkpoint, pretrained)
        return self._end(interruption, quality)

    def _end(self, interruption: KeyboardInterrupt | None, quality: Quality | None) -> Self:
        """Say what became of a training."""
        if interruption is not None:
            try:
                warn_caller(
                    f"training was interrupted after {len(self.history_)} finished epochs: the "
                    "model is usable with what it had learnt so far",
                    ConvergenceWarning,
                )
            finally:  # also where warnings are errors
                raise interruption
        if quality is not None and speaks(self.engine):
            quality.warn_if_bad(self.alignment_weight)
        return self

    @property
    def _maps(self) -> nn.Module:
        """The network between rows in the units of the data."""
        return scaled(self.network_, self.scaling_)

    def partial_fit(self, X: Any, y: object = None, *, gram: Any = None) -> Self:
        """Take one pass of steps over the rows: each is in one batch.

        The first call also fits the kernel and builds the network, from the rows that it gets.
        Later ones go on from the present weights, also after `fit` and after a model was loaded,
        and leave kernel, scaling and landmarks as they are. What learns is what learns in `fit`:
        all of a stack, the decoder of a kernel layer, whose codes are computed anew from all rows
        of such calls, and turned to lie near the former ones. The learning rate is that of
        "endless", whatever `learning_rate` is: nobody knows how many steps will come. The optimizer
        goes on from call to call, but is in no model file.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, at least two; or an array of rows, as in `fit`.
        y : array-like of shape (n_samples,), optional
            Labels, for the `fit` of the kernel at the first call.
        gram : array of shape (n_samples, n_samples) or Gram, optional
            Gram matrix of these rows, if the model has no kernel.
        """
        with unchanged_on_failure(self), _saying_what_masks():
            interruption, _ = fit_part(self, X, y, gram)
        return self._end(interruption, None)  # it has not ended: more passes may come

    def transform(self, X: Any, *, out: Any = None) -> Any:
        """Return the codes of the rows of X, in float32: the map φ into kernel space.

        Parameters
        ----------
        X : array-like, sparse matrix or array of rows
            Rows; those of an array of rows are read a part at a time.
        out : array of shape (n_samples, n_components), optional
            Where codes are written to, part by part, such as a memmap or a Zarr array; it is
            returned.
        """
        check_is_fitted(self)
        with _saying_what_masks():
            return encode_rows(self._maps, self._check_rows(X, reset=False), out)

    def inverse_transform(self, X: Any, *, out: Any = None) -> Any:
        """Return the rows that the decoder gives for codes: the map φ⁻¹ back to input space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components), or an array of rows
            Codes from `transform`, or points of code space that no input maps to.
        out : array of shape (n_samples, n_features), optional
            Where rows are written to, part by part; it is returned.
        """
        check_is_fitted(self)
        if is_row_array(X) and len(X.shape) == 2:
            codes = row_array(X)
        else:
            with naming("codes", X):
                codes = check_array(X, dtype=np.float32, input_name="codes")
        if codes.shape[1] != self._n_features_out:
            raise ValueError(
                f"codes has {codes.shape[1]} columns, but the model was fitted with "
                f"n_components={self._n_features_out}: pass codes as transform returns them"
            )
        return decode_rows(self._maps, codes, out)

    def gram(self, X: Any, Y: Any = None) -> Floats:
        """Return the kernel that the codes represent, ``kernel_scale_ * c(x)ᵀ c(y)``.

        This is an approximation of κ(X, Y), with Y = X if it is not given.
        """
        codes_x = self.transform(X)
        codes_y = codes_x if Y is None else self.transform(Y)
        with np.errstate(over="ignore", invalid="ignore"):
            products = np.asarray(codes_x) @ np.asarray(codes_y).T
            gram = np.float32(self.kernel_scale_) * products
        return finite_float32(gram, "the Gram matrix of the codes of X")

    def score(self, X: Any, y: object = None, *, gram: Any = None) -> float:
        """Return the alignment A(C, P) in [0, 1] of the codes with the kernel on all pairs of X.

        Time is O(n²), memory is not: the matrices are read tile by tile.

        It is to be read beside its floor, the alignment of a constant kernel, which is 0.99 for an
        RBF kernel with the median heuristic. **It cannot choose γ**, nor between kernels: the more
        constant a kernel is, the better constant codes align with it, and in a search near-constant
        kernels win. `dkae.metrics` has scorers for ``GridSearchCV(scoring=...)``:
        `label_alignment_score` can choose γ; `centered_alignment_score` and
        `reconstruction_r2_score` choose among models of one kernel. `dkae.baselines` measures what
        the model must beat.

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
        rows = X if gram is None else self._check_rows(X, reset=False)
        prior = self.prior_gram(X) if gram is None else gram_of(gram, rows)
        return max(0.0, compare_grams(np.asarray(self.transform(X)), prior).alignment)

    def prior_gram(self, X: Any) -> Gram:
        """Return the Gram matrix of the kernel on the rows of X, to be read block by block."""
        check_is_fitted(self)
        if self.kernel_ is None:
            raise ValueError(
                "the model has no kernel that it could evaluate on X, because it was fitted with a "
                "Gram matrix or loaded without its kernel: pass gram=, the Gram matrix of these "
                "rows, or give the kernel back with attach_kernel(kernel)"
            )
        rows = self._kernel_rows(self._check_rows(X, reset=False), self.kernel_)
        return self._gram_on(self.kernel_, rows)

    # --- what a file holds -------------------------------------------------------------------

    def _probe_rows(self) -> Floats:
        """Return what the decoder makes of random codes: rows that are nobody's."""
        shape = (N_PROBES, self.n_components_)
        codes = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        # As large as those of a kernel with κ(x, x) = 1.
        codes /= np.sqrt(np.float32(max(abs(self.kernel_scale_), 1e-12) * self.n_components_))
        # Nearer and nearer to the first: some pair is near enough for any bandwidth to tell.
        codes[1:] = codes[0] + (codes[1:] - codes[0]) * 0.25 ** np.arange(N_PROBES - 1)[:, None]
        rows: Floats = decode_rows(self._maps, codes)
        return rows

    def _set_kernel(self, kernel: Kernel) -> None:
        for module in self.network_.modules():
            if isinstance(module, EvaluatedRows):
                module.attach(kernel)
        self.kernel_ = kernel

    def _check_state(self) -> None:
        if not isinstance(self.network_, nn.Module):
            raise ValueError("network_ is no network")
        if self.scaling_ is not None and not isinstance(self.scaling_, Scaling):
            raise ValueError("scaling_ is no scaling")
        if isinstance(self.network_, KernelLayer):
            self.scaling_ = self.network_.decoder.scaling  # type: ignore[assignment]
        if self.kernel_ is not None and not isinstance(self.kernel_, Kernel):
            raise ValueError("kernel_ is no kernel")
        check_finite_number("kernel_scale_", self.kernel_scale_)
        check_integer("n_components_", self.n_components_, at_least=1)

    # --- the parts of fit --------------------------------------------------------------------

    def _check_pretrained(self, pretrained: Any) -> None:
        if pretrained is None:
            return
        warn_caller("fit(pretrained=...) is now the parameter network", FutureWarning)
        if is_own(self.network):
            raise ValueError("pretrained came beside network: pass all layers as network")

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Return X in float32; with a network of the user's, rows may have any shape.

        Rows of a sparse matrix become dense, and rows on a disk are read and checked, when they are
        asked for.
        """
        own = is_own(self.network)
        if own and not reset:
            self._check_row_shape(X)
        if is_row_array(X):
            X = check_row_array(self, X, reset=reset, any_shape=own, missing=self.missing == "mask")
        else:
            with naming("X", X):
                X = validate_data(
                    self,
                    X,
                    accept_sparse="csr",
                    dtype=np.float32,
                    reset=reset,
                    ensure_min_samples=2 if reset else 1,
                    ensure_all_finite="allow-nan" if self.missing == "mask" else True,
                    allow_nd=own,
                )
        if reset:
            self.row_shape_: tuple[int, ...] = X.shape[1:]
        return RowArray(X, missing=True) if sparse.issparse(X) else X

    def _check_row_shape(self, X: Any) -> None:
        """Speak of shapes: scikit-learn would speak of features, the channels of an image."""
        with naming("X", X):
            shape = np.shape(X)[1:]
        if shape != self.row_shape_:
            raise ValueError(
                f"rows of X have the shape {shape}, but the model was fitted to rows of shape "
                f"{self.row_shape_}: pass rows of that shape"
            )

    def _kernel_rows(self, X: Any, kernel: Kernel) -> Any:
        """Return the rows as the kernel sees them: as they are, if it can take missing values."""
        if self.fill_ is None or kernel.takes_missing:
            return X
        return X.filled(self.fill_) if isinstance(X, RowArray) else RowArray(X, fill=self.fill_)

    def _gram_on(self, kernel: Kernel, X: Any) -> Gram:
        if self.cache_bytes is None:  # a kernel of the user's need not know of it
            return kernel.on(X)
        budget = check_integer("cache_bytes", self.cache_bytes, at_least=0)
        check_takes("kernel.on", kernel.on, "rows", 1, {"cache_bytes": budget})
        return kernel.on(X, cache_bytes=budget)

    # --- the scikit-learn contract -----------------------------------------------------------

    _doc_link_module = "dkae"
    _doc_link_template = (
        "https://dkae.readthedocs.io/en/stable/api/{estimator_module}.{estimator_name}.html"
    )

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

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
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mask"
        return tags


@contextmanager
def _saying_what_masks() -> Iterator[None]:
    """Say of missing values what takes them."""
    try:
        yield
    except ValueError as error:
        if "contains NaN" not in str(error):
            raise
        remedy = "With missing='mask' the model takes such values for unknown, and fills them."
        raise ValueError(f"{error}\n\n{remedy}") from error
