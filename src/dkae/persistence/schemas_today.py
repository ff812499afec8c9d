"""Classes that the redesign replaces, for as long as they are here: goes with them."""

from __future__ import annotations

from functools import partial

from dkae.persistence import schemas
from dkae.persistence.schema import FLAG, NOTHING, SCHEMAS, Array, Object, OrElse, Schema, Seed
from dkae.persistence.schema import Sequence as Several
from dkae.persistence.schema import Size, integer

_PARAMS = schemas._plain(
    "n_components", "gamma", "degree", "coef0", "alignment_weight", "distillation", "missing",
    "hidden_layer_sizes", "activation", "code_activation", "output_activation", "linear_path",
    "batch_size", "max_iter", "steps_per_epoch", "pretrain_max_iter", "decoder_max_iter",
    "learning_rate", "learning_rate_init", "max_grad_norm", "input_noise", "early_stopping",
    "validation_fraction", "n_iter_no_change", "tol", "precision", "shuffle", "engine", "compile",
    "warm_start", "epoch", "standardize", "layer_norm", "tied_weights",
)  # fmt: skip
_NUMBERS = schemas._array

SCHEMAS.update(
    {
        "DeepKernelizedAutoencoder": Schema(
            "dkae.autoencoder:DeepKernelizedAutoencoder",
            {
                **_PARAMS,
                "kernel": schemas.KERNEL_OR_NAME,
                "kernel_params": schemas.Mapped(schemas.PLAIN) | NOTHING,
                "alignment": schemas.CODE_OR_NAME,
                "optimizer": schemas.CODE_OR_NAME,
                "network": OrElse(schemas.TEXT, lambda network: "stacked"),
                "random_state": Seed(),
                **schemas.N_FEATURES,
                "n_components_": Size("m"),
                "row_shape_": Several(integer(1, "widest"), 1, 16),
                "kernel_": schemas.KERNEL | NOTHING,
                "kernel_scale_": schemas.REAL,
                "fill_": Array() | NOTHING,
                "scaling_": Object(("Scaling",)) | NOTHING,
                "history_": schemas.RECORDS,
                "n_iter_": integer(),
                **{name: schemas._MAP[name] for name in ("alignment_", "centered_alignment_")},
                "r2_": schemas._MAP["r2_"],
                "network_": Object((*schemas.NETWORKS, "CustomNetwork")),
            },
            check=schemas._check_row,
            state=schemas._autoencoder_state,
            build=schemas._build_autoencoder,
        ),
        "KernelPCA": Schema(
            "dkae.spectral.kernel_pca:KernelPCA",
            {
                **schemas._plain("n_components", "gamma", "degree", "coef0", "solver"),
                "kernel": schemas.KERNEL_OR_NAME,
                "kernel_params": schemas.Mapped(schemas.PLAIN) | NOTHING,
                "center": FLAG,
                "preimage": Object(("PreImage",)) | NOTHING,
                "random_state": Seed(),
                **schemas.N_FEATURES,
                "n_components_": Size("m"),
                "kernel_": schemas.KERNEL | NOTHING,
                "eigenvalues_": _NUMBERS("m"),
                "coefficients_": _NUMBERS("n", "m"),
                "offset_": _NUMBERS("m"),
                "X_fit_": _NUMBERS("n", "d") | NOTHING,
                "preimage_": Object(("PreImage",)) | NOTHING,
            },
            cost=partial(schemas._map_cost, "X_fit_"),
        ),
        "PreImage": Schema(
            "dkae.spectral.preimage:PreImage",
            {
                **schemas._plain("kernel", "gamma", "degree", "coef0", "alpha", "alphas"),
                **schemas._plain("validation_fraction", "max_samples", "approximation"),
                "random_state": Seed(),
                **schemas.N_FEATURES,
                "gamma_": schemas.REAL | NOTHING,
                "alpha_": schemas.REAL,
                "mean_": Array(),
                "regression_": Object((*schemas.REGRESSORS, "Pipeline")),
            },
        ),
    }
)
