"""Networks as users write them: of public names only, and in a module, so that they pickle."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    """The least that a network needs: two maps."""

    def __init__(self, shape=(64,), n_components=5, generator=None):
        super().__init__()
        self.up, self.down = nn.Linear(shape[0], n_components), nn.Linear(n_components, shape[0])

    def encode(self, x: Tensor) -> Tensor:
        return self.up(x)

    def decode(self, codes: Tensor) -> Tensor:
        return self.down(codes)


class Affine(nn.Module):
    """The network of a decoder alone: its inputs are codes."""

    def __init__(self, n_components, n_features):
        super().__init__()
        self.linear = nn.Linear(n_components, n_features)

    def encode(self, x: Tensor) -> Tensor:
        return x

    def decode(self, codes: Tensor) -> Tensor:
        return self.linear(codes)

    def decoder_parameters(self):
        return self.parameters()


class Block(nn.Module):
    """h ← h + f(h)."""

    def __init__(self, width):
        super().__init__()
        self.change = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())

    def forward(self, h: Tensor) -> Tensor:
        return h + self.change(h)


class Residual(nn.Module):
    """Residual blocks on vectors, for rows of any shape."""

    def __init__(self, shape=(64,), n_components=5, generator=None, width=16):
        super().__init__()
        n = math.prod(shape)
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(n, width), Block(width), nn.Linear(width, n_components)
        )
        self.decoder = nn.Sequential(
            nn.Linear(n_components, width),
            Block(width),
            nn.Linear(width, n),
            nn.Unflatten(1, shape),
        )

    def encode(self, x: Tensor) -> Tensor:
        return self.encoder(x)

    def decode(self, codes: Tensor) -> Tensor:
        return self.decoder(codes)

    def decoder_parameters(self):
        return self.decoder.parameters()


class Recurrent(nn.Module):
    """A GRU reads sequences of shape (t, d), another one writes them."""

    def __init__(self, shape, n_components, generator=None, width=8):
        super().__init__()
        self.length = shape[0]
        self.reader = nn.GRU(shape[1], width, batch_first=True)
        self.to_code = nn.Linear(width, n_components)
        self.writer = nn.GRU(n_components, width, batch_first=True)
        self.to_row = nn.Linear(width, shape[1])

    def encode(self, x: Tensor) -> Tensor:
        return self.to_code(self.reader(x)[1][-1])

    def decode(self, codes: Tensor) -> Tensor:
        return self.to_row(self.writer(codes[:, None].repeat(1, self.length, 1))[0])

    def decoder_parameters(self):
        return [*self.writer.parameters(), *self.to_row.parameters()]


class Noisy(nn.Module):
    """Batch statistics and dropout in both maps: what must stand still while others learn."""

    def __init__(self, shape=(64,), n_components=5, generator=None, width=12):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(shape[0], width), nn.BatchNorm1d(width), nn.Dropout(0.3), nn.ReLU(),
            nn.Linear(width, n_components),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(n_components, width), nn.BatchNorm1d(width), nn.Dropout(0.3), nn.ReLU(),
            nn.Linear(width, shape[0]),
        )  # fmt: skip

    def encode(self, x: Tensor) -> Tensor:
        return self.encoder(x)

    def decode(self, codes: Tensor) -> Tensor:
        return self.decoder(codes)

    def decoder_parameters(self):
        return self.decoder.parameters()


class Staged(nn.Module):
    """Two noisy parts that are pretrained one after the other."""

    def __init__(self, shape=(64,), n_components=5, generator=None):
        super().__init__()
        self.lower, self.upper = Noisy(shape, 10), Noisy((10,), n_components)

    def encode(self, x: Tensor) -> Tensor:
        return self.upper.encode(self.lower.encode(x))

    def decode(self, codes: Tensor) -> Tensor:
        return self.lower.decode(self.upper.decode(codes))

    def stages(self):
        from dkae.networks import Stage

        return [
            Stage("lower", self.lower, lambda x: x, is_code=False),
            Stage("upper", self.upper, self.lower.encode, is_code=True),
        ]


def spread(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    """A custom measure: the mean squared difference of the Grams, scaled to the same norm."""
    scaled = [gram / torch.linalg.norm(gram) for gram in (code_gram, prior_gram)]
    return (scaled[0] - scaled[1]).square().sum()


def wave_kernel(A, B):
    """A custom kernel on arrays of sequences, (n, t, d)."""
    import numpy as np

    return np.exp(-((A[:, None] - B[None]) ** 2).mean(axis=(2, 3)))
