"""Look at a model: its training, its kernel, its reconstructions and its codes.

python examples/plot_model.py [plot_model.png]
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from dkae import DeepKernelizedAutoencoder
from dkae.networks import Stack
from dkae.plotting import (
    STYLE,
    CodeSpaceDisplay,
    GramDisplay,
    HistoryDisplay,
    ReconstructionDisplay,
)

X, y = load_digits(return_X_y=True)
X /= 16
model = DeepKernelizedAutoencoder(
    32, network=Stack((128,)), max_iter=6, validation_fraction=0.1, random_state=0
).fit(X)

with plt.rc_context(STYLE):  # without `ax`, each of them opens a figure in this style
    figure, axes = plt.subplots(2, 2, figsize=(12, 7), layout="constrained")
    HistoryDisplay.from_estimator(model, ax=axes[0, 0])
    GramDisplay.from_estimator(model, X, y, ax=axes[0, 1])
    ReconstructionDisplay.from_estimator(model, X, y, ax=axes[1, 0])
    CodeSpaceDisplay.from_estimator(model, X, y, ax=axes[1, 1])
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "plot_model.png", dpi=150)
