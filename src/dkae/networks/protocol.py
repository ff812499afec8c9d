"""What a network is to dkae: a torch module with two maps, and what it may offer beyond them.

A network needs ``encode``, from k rows to codes of shape (k, n_components), and ``decode``, from
codes to rows in the shape of the rows. Missing values never reach it: they hold the mean of their
feature. It may also have

========================  =====================================================================
``decoder_parameters()``  for ``decoder_max_iter > 0``: what the decoder learns alone, and nothing
                          that the encoder uses. It is called once, when that phase begins: a
                          network with tied weights unties them here. A ``decode`` that is a module
                          itself needs no such method.
``stages()``              for ``pretrain_max_iter > 0``: a list of `Stage`, the parts that are
                          pretrained one after the other.
``unit``                  the unit in which the loss measures differences of rows: a number, or a
                          tensor of the shape of a row. It is 1 by default.
``is_deterministic``      True if training draws none of torch's random numbers, as dropout does:
                          then `fit` need not seed them, and several threads can train at once.
``summary``               a few words for `repr` and the log; by default the name of the class and
                          the number of weights.
========================  =====================================================================

The parameter `network` is such a module, which is copied; a factory ``(shape, n_components,
generator)``, which gets the shape of a row, such as (784,) or (1, 28, 28), the width of the code
and a source of random numbers; or an object with ``build(statistics, n_components, generator)``,
such as `Stack`, that wants to know the `Statistics` of the training rows. Such an object may have
``takes_vectors = True``: then `fit` requires X to be a matrix.
"""

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dkae._support.checks import shown
from dkae._support.devices import float32_math
from dkae.grams import Floats
from dkae.statistics import Statistics


class Stage(NamedTuple):
    """A part of a network that is pretrained alone, on what the parts below it put out."""

    name: str
    #: A network of its own, which shares its parameters with the whole.
    network: nn.Module
    #: The map from rows to its inputs, which stands still meanwhile.
    below: Callable[[Tensor], Tensor]
    #: Whether its codes are those of the whole network, which are aligned with the kernel.
    is_code: bool


def build_network(
    network: Any, known: Statistics, n_components: int, generator: torch.Generator
) -> nn.Module:
    """Return the network that a module, a factory or a builder stands for; a module is copied."""
    with seeded(generator.initial_seed()):
        built = _built(network, known, n_components, generator)
    missing = [name for name in ("encode", "decode") if not callable(getattr(built, name, None))]
    if missing or not isinstance(built, nn.Module):
        lacks = f" without {' and '.join(missing)}" if missing else ""
        raise ValueError(
            f"network gives a {_name(built)}{lacks}: expected a torch.nn.Module with "
            "encode(x) and decode(codes)"
        )
    return built


def _built(network: Any, known: Statistics, n_components: int, generator: torch.Generator) -> Any:
    if isinstance(network, nn.Module):
        try:
            return copy.deepcopy(network)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"network={_name(network)} cannot be copied ({error}): pass a factory, a function "
                "(shape, n_components, generator) that builds it"
            ) from error
    if callable(getattr(network, "build", None)) and not isinstance(network, type):
        return network.build(known, n_components, generator)
    if not callable(network):
        raise ValueError(
            f"network={shown(network)} is neither a torch module nor a factory: pass a Stack, a "
            "module with encode and decode, or a function (shape, n_components, generator) that "
            "returns one"
        )
    try:
        return network(known.shape, n_components, generator)
    except TypeError as error:
        raise TypeError(
            f"network={getattr(network, '__name__', _name(network))} failed as a factory "
            f"({error}): it is called with (shape, n_components, generator)"
        ) from error


def check_network(network: nn.Module, rows: Floats, n_components: int) -> None:
    """Raise if a network cannot learn, or if its maps return other shapes than they should."""
    name, devices = _name(network), sorted({str(p.device) for p in network.parameters()})
    if not devices:
        raise ValueError(f"network={name} holds no parameters: there is nothing to train")
    if len(devices) > 1:
        raise ValueError(
            f"network={name} has parameters on several devices ({', '.join(devices)}): leave it "
            "on one, and set device= to where it should train"
        )
    # torch takes no array that is reversed.
    x = torch.tensor(np.ascontiguousarray(rows), device=devices[0])
    with evaluating(network), torch.no_grad():
        codes = _apply(network, "encode", x)
        _check_shape(
            f"{name}.encode", codes, (len(x), n_components), "set n_components to its width"
        )
        decoded = _apply(network, "decode", codes)
        _check_shape(f"{name}.decode", decoded, tuple(x.shape), "it must return rows like X")


def decoder_parameters_of(network: Any) -> Callable[[], Any] | None:
    """Return the function that returns the decoder's parameters, or None without one."""
    if callable(getattr(network, "decoder_parameters", None)):
        return network.decoder_parameters  # type: ignore[no-any-return]
    return network.decode.parameters if isinstance(network.decode, nn.Module) else None


def check_decoder(network: nn.Module, rows: Floats) -> None:
    """Raise if codes depend on the decoder's parameters.

    This looks at a copy, because asking for them unties tied weights.
    """
    trial: Any = copy.deepcopy(network).cpu()
    parameters = decoder_parameters_of(trial)
    own = [p for p in parameters() if p.requires_grad] if parameters else []
    if not own:
        raise ValueError(
            f"network={_name(network)} has no decoder_parameters() that could learn: return those "
            "of the decoder with requires_grad, or set decoder_max_iter=0"
        )
    with evaluating(trial), torch.enable_grad():
        codes = trial.encode(torch.tensor(np.ascontiguousarray(rows))).sum()
        found = torch.autograd.grad(codes, own, allow_unused=True) if codes.requires_grad else ()
    n_shared = sum(gradient is not None for gradient in found)
    if n_shared:
        raise ValueError(
            f"network={_name(network)}: the codes depend on {n_shared} of decoder_parameters(), "
            "and would move while the decoder learns alone: give the decoder tensors of its own "
            "there, or set decoder_max_iter=0"
        )


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Keep dropout and batch statistics still, and restore the mode of each part afterwards."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


#: Torch's own random numbers belong to the whole process: threads build networks in turn.
_RANDOM_LOCK = threading.RLock()


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Seed torch's own random numbers, which modules draw their weights from, and restore them.

    None leaves them as they are.
    """
    if seed is None:
        yield
        return
    with _RANDOM_LOCK, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


# --- a trained network on one chunk of rows in memory --------------------------------------------


def encode_rows(network: Any, rows: Floats) -> Floats:
    """Return the codes of rows."""
    return _applied(network, network.encode, rows)


def decode_rows(network: Any, codes: Floats) -> Floats:
    """Return the rows that codes decode to."""
    return _applied(network, network.decode, codes)


def _applied(network: nn.Module, function: Callable[[Tensor], Tensor], rows: Floats) -> Floats:
    device = next(network.parameters()).device
    with evaluating(network), float32_math(), torch.inference_mode():
        values: Floats = function(torch.from_numpy(rows).to(device)).cpu().numpy()
    return values


def summary_of(network: nn.Module) -> str:
    """Return a few words about a network."""
    n = sum(parameter.numel() for parameter in network.parameters())
    return str(getattr(network, "summary", f"{_name(network)} of {n:,} weights"))


# --- helpers of the checks -----------------------------------------------------------------------


def _apply(network: nn.Module, method: str, x: Tensor) -> Tensor:
    try:
        result = getattr(network, method)(x)
    except Exception as error:  # whatever the user's code raises
        raise ValueError(
            f"network={_name(network)}.{method} failed on an input of shape {tuple(x.shape)} "
            f"({type(error).__name__}: {error}): it must take what it gets here"
        ) from error
    if not isinstance(result, Tensor):
        raise ValueError(
            f"network={_name(network)}.{method} returned a {_name(result)}, expected a tensor"
        )
    return result


def _check_shape(what: str, result: Tensor, expected: tuple[int, ...], remedy: str) -> None:
    if tuple(result.shape) != expected:
        raise ValueError(
            f"network={what} returned shape {tuple(result.shape)}, expected {expected}: {remedy}"
        )


def _name(value: object) -> str:
    return type(value).__name__
