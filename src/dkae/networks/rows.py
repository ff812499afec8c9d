"""A network on the rows of an array, chunk by chunk, without gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dkae._support.arrays import check_out
from dkae.grams import Floats
from dkae.networks.protocol import evaluating
from dkae.rows import release

#: Rows of an array that go through the network together.
N_CHUNK_ROWS = 1024
#: And numbers: rows of sparse data become dense here.
N_CHUNK_NUMBERS = 2**26


def encode_rows(network: nn.Module, X: Any, out: Any = None) -> Any:
    """Return the codes of the rows of an array, written to `out` if that is given."""
    return _in_chunks(network, network.encode, X, out, ("X", "codes"))  # type: ignore[arg-type]


def decode_rows(network: nn.Module, codes: Any, out: Any = None) -> Any:
    """Return the rows that an array of codes decodes to, written to `out` if that is given."""
    return _in_chunks(network, network.decode, codes, out, ("codes", "rows"))  # type: ignore[arg-type]


def _in_chunks(
    network: nn.Module,
    function: Callable[[Tensor], Tensor],
    X: Any,
    out: Any,
    names: tuple[str, str],
) -> Any:
    """Apply one map of the network; the activations of all rows never coexist."""
    device = next(network.parameters()).device
    result = None
    with evaluating(network), torch.inference_mode():
        n = max(1, min(N_CHUNK_ROWS, N_CHUNK_NUMBERS // int(np.prod(X.shape[1:]))))
        for i in range(0, len(X), n):
            # A copy, because torch warns of arrays that it must not write to; in one order, because
            # torch takes no reversed one, and the last digits depend on it.
            rows = np.array(X[i : i + n], order="C")
            chunk = function(torch.from_numpy(rows).to(device))
            if result is None:
                # One array for all: joining chunks in the end would need the memory twice.
                result = check_out(out, (len(X), *chunk.shape[1:]))
            values = chunk.cpu().numpy()
            bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
            if bad.any():
                raise ValueError(_overflow(rows, i, int(bad.argmax()), names))
            result[i : i + len(values)] = values
            release(result)
    if result is None:
        raise ValueError(f"{names[0]} has no rows: pass at least one")
    return result


def _overflow(rows: Floats, start: int, i: int, names: tuple[str, str]) -> str:
    name, result_name = names
    return (
        f"row {start + i} of {name}, with entries up to {np.nanmax(np.abs(rows[i])):.3g}, has no "
        f"finite {result_name}: the network does not reach so far in float32; pass {name} in the "
        "range of the training data"
    )
