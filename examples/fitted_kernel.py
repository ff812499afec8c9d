"""A kernel is fitted once, and its Gram serves several models; a Gram of your own computes lazily.

``kernel.on(X)`` is a Gram matrix that is read block by block. Passed to `fit`, nothing is fitted or
computed again, and the model knows the kernel for new rows.
"""

import numpy as np
from sklearn.datasets import load_digits

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA
from dkae.grams import Gram
from dkae.kernels import ProbabilisticClusterKernel
from dkae.networks import Stack

X = load_digits().data / 16
train, test = X[:1200], X[1200:]

kernel = ProbabilisticClusterKernel(10, 5, random_state=0).fit(train)
gram = kernel.on(train)
settings = {"network": Stack((128,)), "max_iter": 8, "random_state": 0}
model = DeepKernelizedAutoencoder(32, **settings).fit(train, gram=gram)
print(f"autoencoder: alignment on new rows {model.score(test):.4f}")

nystroem = InvertibleNystroem(32, random_state=0).fit(train, gram=gram)
print(f"Nyström:     alignment on new rows {nystroem.score(test):.4f}")

pca = KernelPCA(32, center=False).fit(train, gram=gram)
print(f"kernel PCA:  alignment on new rows {pca.score(test):.4f}")


class Overlap(Gram):
    """Shared ink, Σ min(x, y), of all pairs of images: computed where it is asked for."""

    n_entries = 0

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def block(self, rows, columns=None):
        a, b = self.rows[rows], self.rows[rows if columns is None else columns]
        self.n_entries += len(a) * len(b)
        return np.minimum(a[:, None], b).sum(axis=2)


overlap = Overlap(train)
model = DeepKernelizedAutoencoder(32, **settings, steps_per_epoch=10, batch_size=50)
model.fit(train, gram=0.9 * overlap + 0.1 * gram)  # Grams add up and multiply
print(f"overlap:     alignment {model.score(test, gram=Overlap(test)):.4f}")
print(f"             from {overlap.n_entries / len(train) ** 2:.0%} of the entries")
