"""Sequences: a recurrent network and a kernel, both written here.

The rows of X are waves of shape (t, d). The kernel compares their spectra, so that it does not
matter when a wave begins; the codes learn this from the waves themselves, and decode to waves.
"""

import numpy as np
from torch import nn

from dkae import DeepKernelizedAutoencoder
from dkae.training import Optimization


class Recurrent(nn.Module):
    """One GRU reads a sequence into a code, another one writes it from the code."""

    def __init__(self, shape, n_components, generator=None):
        super().__init__()
        self.length = shape[0]
        self.reader = nn.GRU(shape[1], 32, batch_first=True)
        self.to_code = nn.Linear(32, n_components)
        self.writer = nn.GRU(n_components, 32, batch_first=True)
        self.to_row = nn.Linear(32, shape[1])

    def encode(self, x):
        return self.to_code(self.reader(x)[1][-1])

    def decode(self, codes):
        return self.to_row(self.writer(codes[:, None].repeat(1, self.length, 1))[0])

    def decoder_parameters(self):  # what the decoder may learn alone in the end
        return [*self.writer.parameters(), *self.to_row.parameters()]


def same_spectrum(A, B):
    """Return the Gram matrix of the amplitudes of all frequencies, for two arrays of waves."""
    a, b = (np.abs(np.fft.rfft(waves, axis=1)).reshape(len(waves), -1) for waves in (A, B))
    return a @ b.T


rng = np.random.default_rng(0)
frequency = rng.choice([1, 2, 4], 500)
angles = 2 * np.pi * (frequency[:, None] * np.arange(24) / 24 + rng.random((500, 1)))
X = (np.sin(angles) + 0.1 * rng.normal(size=angles.shape))[:, :, None].astype("float32")

model = DeepKernelizedAutoencoder(
    12,
    network=Recurrent,
    kernel=same_spectrum,
    batch_size=100,
    alignment_weight=0.3,
    max_iter=8,
    steps_per_epoch=30,
    optimization=Optimization(learning_rate_init=0.01),
    random_state=0,
).fit(X[:400])
similarity = model.gram(X[400:], X[:400])
nearest = frequency[:400][similarity.argmax(axis=1)]
print(f"alignment with the spectral kernel on new waves {model.score(X[400:]):.4f}")
print(f"nearest wave has the same frequency: {np.mean(nearest == frequency[400:]):.0%}")
print(f"waves of shape {model.inverse_transform(model.transform(X[400:])).shape}")
