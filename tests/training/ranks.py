"""What each process of a test with several does: ``torchrun ranks.py JOBS FOLDER``."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import RBFSampler
from torch import nn

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, RowArray, load, save
from dkae._support.processes import ALONE, joined
from dkae.alignment import MEASURES
from dkae.decoders import MLPDecoder
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    Precomputed,
    ProbabilisticClusterKernel,
    TransformerKernel,
)
from dkae.networks import Autoencoder, Layer, Stack
from dkae.training import (
    FINE_TUNING,
    BatchSource,
    EarlyStopping,
    Optimization,
    Phase,
    Trainer,
)
from dkae.training.distributed import average_gradients

RANK, SIZE = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
CPU = torch.device("cpu")
DIGITS = load_digits()
X, LABELS = (DIGITS.data[:600] / 16).astype(np.float32), DIGITS.target[:600]
GAPPY = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.float32(np.nan), X)

PCK = {"kernel": ProbabilisticClusterKernel(4, 3, random_state=0)}


def tiny(**params):
    model = DeepKernelizedAutoencoder(
        6, network=Stack((12,)), max_iter=3, decoder_max_iter=2, steps_per_epoch=10,
        batch_size=40, random_state=0,
    )  # fmt: skip
    return model.set_params(**params)


def nystroem():
    return InvertibleNystroem(
        6, decoder=MLPDecoder((12,), max_iter=2, batch_size=40, steps_per_epoch=10), random_state=0
    )


def weights(model):
    network = model.network_ if hasattr(model, "network_") else model.decoder_.network_
    return torch.cat([t.double().ravel() for t in network.state_dict().values()])


# --- the same model, however many processes ------------------------------------------------------


class Dropping(nn.Module):
    """A custom network: its decoder is a module, and one of its parameters has no use."""

    def __init__(self, shape, n_components, generator=None, width=10):
        super().__init__()
        layers = nn.Linear(*shape, width), nn.Tanh(), nn.Linear(width, n_components)
        self.encoder = nn.Sequential(*layers)
        self.decode = nn.Linear(n_components, *shape)
        self.idle = nn.Linear(2, 2)

    def encode(self, x):
        return self.encoder(x)


#: Fits that must end with the same weights in one process and in two.
FITS = {
    "stack": {},
    "alignment alone": {"alignment_weight": 1.0},
    "plain autoencoder": {"alignment_weight": 0.0},
    "pretraining": {"pretrain_max_iter": 2, "max_iter": 1},
    "cluster kernel": PCK,
    "cluster kernel, nothing held": PCK | {"cache_bytes": 0},
    "forest": {"kernel": ForestKernel(n_estimators=9, random_state=0)},
    "noise, clipped": {"input_noise": 0.3, "optimization__max_grad_norm": 0.01},
    "views": {"augment": "mixup"},
    "early stopping": {"callbacks": [EarlyStopping()], "validation_fraction": 0.2},
    "a custom network": {"network": Dropping},
    "gaps": {"missing": "mask"},
    "a memmap": {},
    "Nyström": {},
    "Nyström, gaps": {"missing": "mask"},
}


def rows_of(name):
    if name != "a memmap":
        return GAPPY if "gaps" in name else X
    path = Path(tempfile.mkdtemp()) / "rows.npy"
    np.save(path, (X * 16).astype(np.uint8))
    return RowArray(np.load(path, mmap_mode="r"), scale=16)


def fits():
    found = {}
    for name, params in FITS.items():
        model = (nystroem() if "Nyström" in name else tiny()).set_params(**params)
        model.fit(rows_of(name))
        found[name] = {
            "weights": weights(model).tolist(),
            "scale": model.kernel_scale_,
            "history": model.history_,
        }
    return found


def streams():
    """Passes, and custom batches."""
    model = tiny()
    for part in np.array_split(X, 3):
        model.partial_fit(part)
    # Nothing of it depends on the first rows, which are other ones in each process.
    loaded = tiny(gamma=0.05, network__input_scaling=False)
    own = slice(RANK * 40 // SIZE, (RANK + 1) * 40 // SIZE)
    loaded.fit(Batches([torch.from_numpy(X[i : i + 40][own]) for i in range(0, 600, 40)]))
    return [weights(m).tolist() for m in (model, loaded)]


class Batches:
    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def gradients():
    """Return the gap of each measure's gradient between two processes and one, in both types."""
    found = {}
    with joined(CPU) as together:
        for name, measure in MEASURES.items():
            for dtype in (torch.float32, torch.float64):
                ours, alone = (_gradient(those, measure, dtype) for those in (together, ALONE))
                found[f"{name} {dtype}"] = float((ours - alone).norm() / alone.norm())
    return found


def _gradient(processes, measure, dtype):
    torch.manual_seed(0)
    net = Autoencoder([Layer(64, 50, activation="tanh", output_activation="identity")]).to(dtype)
    everyone = np.arange(len(X))
    source = BatchSource(
        X, PairwiseKernel().fit(X).on(X), everyone, everyone[:0], 40, 5, np.random.default_rng(0),
        CPU, processes=processes,
    )  # fmt: skip
    trainer = Trainer(net, measure, source, [], Optimization(), CPU, processes)
    phase = Phase(FINE_TUNING, net, net.parameters, 1, alignment_weight=0.3)
    batch = source.draw()
    parts = {name: getattr(batch, name).to(dtype) for name in ("inputs", "targets", "prior_gram")}
    trainer.batch_losses(phase, batch._replace(**parts), processes).total.backward()
    average_gradients(list(net.parameters()), processes)
    return torch.cat([p.grad.ravel() for p in net.parameters()])


def messages():
    """Send values and arrays of all kinds, other ones from each rank."""
    with joined(CPU) as processes:
        arrays = {
            "numbers": np.arange(3.0 + RANK), "none": np.empty((0, 2), np.float32),
            "text": np.array(["a", "bcd"[RANK:]]), "0-d": np.array(RANK), "flags": X[:2] > RANK,
            "turned": np.asfortranarray(X[:5, : 3 + RANK]),
        }  # fmt: skip
        arrays["numbers"].flags.writeable = False
        return {
            "values": processes.gather({"rank": RANK, "text": "é" * RANK, "none": None}),
            "first": processes.first([RANK, "ß"]),
            "highest": processes.highest(5 * RANK),
            "arrays": [{k: [v.dtype.str, v.tolist()] for k, v in theirs.items()}
                       for theirs in processes.gather_arrays(arrays)],
            "first arrays": processes.first_arrays({"x": np.array([RANK])})["x"].tolist(),
        }  # fmt: skip


# --- ranks that differ ----------------------------------------------------------------------------


def shifted(x, y):
    return x @ y.T + RANK  # what it does depends on a global


def fit(rows=X, y=None, gram=None, checkpoint=None, **params):
    tiny(**params).fit(rows, y, gram=gram, checkpoint=checkpoint)


def gram_of(kernel):
    return kernel.fit(X, LABELS).on(X)


def fit_where_one_goes_on(folder):
    model = tiny(warm_start=True).fit(X)
    (clone(model) if RANK else model).fit(X)


def forest_of_its_own():
    return ForestKernel(RandomForestClassifier(5).fit(X, LABELS))


def sampler_of_its_own():
    return TransformerKernel(RBFSampler().fit(X))


VALUES = "the kernel values of the same rows"

#: Things in which rank 1 differs from rank 0, and how all ranks name them.
DIFFERENCES = {
    "n_components": (lambda _: fit(n_components=6 + RANK), "n_components (7, not 6)"),
    "batch_size": (lambda _: fit(batch_size=40 + 2 * RANK), "batch_size (42, not 40)"),
    "hidden layers": (
        lambda _: fit(network__hidden_layer_sizes=(12 + RANK,)),
        "network__hidden_layer_sizes ((13,), not (12,))",
    ),
    "random_state": (lambda _: fit(random_state=RANK), "random_state (1, not 0)"),
    "gamma": (lambda _: fit(gamma=0.1 + 0.01 * RANK), "gamma (0.11, not 0.1)"),
    "kernel": (
        lambda _: fit(kernel=("rbf", "laplacian")[RANK]), "kernel ('laplacian', not 'rbf')"
    ),
    "PCK's size": (
        lambda _: fit(kernel=ProbabilisticClusterKernel(3 + RANK)),
        "kernel__max_components (4, not 3)",
    ),
    "measure": (
        lambda _: fit(alignment=(lambda c, p: c.sum(), lambda c, p: p.sum())[RANK]), "alignment"
    ),
    "rows": (lambda _: fit(X + RANK), "the rows of X"),
    "views": (
        lambda _: fit(augment=lambda rows, rng: rows + RANK), "what augment returned"
    ),
    "order of rows": (lambda _: fit(X[:: 1 - 2 * RANK]), "the rows of X"),
    "number of rows": (
        lambda _: fit(X[: 600 - RANK]), "the shape of X ((599, 64), not (600, 64)), the rows of X"
    ),
    "columns": (
        lambda _: fit(X[:, : 64 - RANK]), "the shape of X ((600, 63), not (600, 64)), the rows of X"
    ),
    "rows on disk": (lambda _: fit(RowArray(X + RANK)), "the rows of X"),
    "an array and batches": (
        lambda _: fit(Batches([X]) if RANK else X), "batches (given, not absent)"
    ),
    "gram": (lambda _: fit(gram=X @ X.T + RANK), VALUES),
    "gram on one": (lambda _: fit(gram=X @ X.T if RANK else None), "gram (given, not absent)"),
    "a computed gram": (
        lambda _: fit(gram=gram_of(PairwiseKernel("rbf", gamma=0.1 + RANK))), VALUES
    ),
    "y": (lambda _: fit(y=(LABELS + RANK) % 10), "y"),
    "y on one": (lambda _: fit(y=None if RANK else LABELS), "y (absent, not given)"),
    "checkpoint on one": (
        lambda folder: fit(checkpoint=folder / "c" if RANK else None),
        "checkpoint (given, not absent)",
    ),
    "precomputed": (lambda _: fit(kernel=Precomputed(X @ X.T + RANK, X)), "kernel__gram_matrix"),
    "a global": (lambda _: fit(kernel=shifted), VALUES),
    "forest": (lambda _: fit(kernel=forest_of_its_own()), VALUES),
    "sampler": (lambda _: fit(kernel=sampler_of_its_own()), VALUES),
    "PCK": (
        lambda _: fit(gram=gram_of(ProbabilisticClusterKernel(4, 3, random_state=RANK))), VALUES
    ),
    "network's shape": (lambda _: fit(network=Dropping((64,), 6, width=10 + RANK)), "network"),
    "hidden shape": (lambda _: fit(network=of_a_global_width), "the shapes of the network"),
    "warm start": (fit_where_one_goes_on, "fitted (absent, not given)"),
}  # fmt: skip


def of_a_global_width(shape, n_components, generator=None):
    return Dropping(shape, n_components, width=10 + RANK)


# --- ranks that fail ------------------------------------------------------------------------------


class Failing:
    is_for_all = True

    def __init__(self, error):
        self.error = error

    def on_epoch_end(self, trainer, phase, record):
        if RANK == 1:
            raise self.error


def failing_kernel(x, y):
    if RANK:
        raise ZeroDivisionError("in a kernel")
    return x @ y.T


HOLE = X.copy()
HOLE[317] = np.nan if RANK else HOLE[317]
GLOO = "this is how gloo, NCCL and others fail: Connection closed by peer"
#: Things at which a rank fails: which one, its own error, and the beginning of what others say.
FAILURES = {
    "gap": (lambda _: fit(HOLE), 1, "ValueError: Input X contains NaN"),
    "gap on disk": (lambda _: fit(RowArray(HOLE)), 1, "ValueError: row 317 of X contains NaN"),
    "folder": (
        lambda folder: fit(checkpoint=folder / ("c" if RANK else "not there/c")), 0,
        "ValueError: checkpoint=",
    ),
    "gram of another size": (
        lambda _: fit(gram=X[: 600 - RANK] @ X[: 600 - RANK].T), 1,
        "ValueError: gram has shape (599, 599)",
    ),
    "kernel": (lambda _: fit(kernel=failing_kernel), 1, "ZeroDivisionError: in a kernel"),
    "callback": (
        lambda _: fit(callbacks=[Failing(KeyError("of a callback"))]), 1,
        "KeyError: 'of a callback'",
    ),
    "an error like gloo's": (
        lambda _: fit(callbacks=[Failing(RuntimeError(GLOO))]), 1, f"RuntimeError: {GLOO}"
    ),
    "a broken connection": (
        lambda _: fit(callbacks=[Failing(ConnectionError("elsewhere"))]), 1,
        "ConnectionError: elsewhere",
    ),
    "Ctrl-C": (
        lambda _: fit(callbacks=[Failing(KeyboardInterrupt())]), 1, "KeyboardInterrupt: "
    ),
    "batch": (
        lambda _: fit(batch_size=41), None,
        "ValueError: batch_size=41 makes batches of 41 rows, which cannot be divided among 2 proc",
    ),
}  # fmt: skip


def said_of(cases, folder):
    """Return the error of each case."""
    said = {}
    for name, (case, *_) in cases.items():
        try:
            case(folder)
            said[name] = "nothing"
        except BaseException as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


# --- processes that are killed, and other machines ------------------------------------------------


class Killed:
    """Ends the process of a rank at a step, if torchrun has not started it again."""

    is_for_all = True

    def __init__(self, rank):
        self.rank = rank

    def on_step_end(self, trainer, phase):
        is_first_start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        if is_first_start and (RANK, trainer.epoch, trainer.step) == (self.rank, 1, 4):
            os.kill(os.getpid(), signal.SIGKILL)


def killed(folder):
    """Train with a checkpoint that is written at every step; one process is killed meanwhile."""
    import dkae.training.checkpoint as module

    module.EVERY_SECONDS = 0.0
    model = tiny(callbacks=[Killed(1)])
    model.fit(X, checkpoint=folder / "state")
    if RANK == 0:
        save(model, folder / "model.safetensors")
    unbroken = tiny().fit(X)
    return bool((weights(model) == weights(unbroken)).all())


def hosts():
    """Train in processes that several machines have started, and without a seed."""
    model = tiny().fit(X)
    drawn = [
        tiny(**params, random_state=None, max_iter=1).fit(X)
        for params in ({"kernel": "pck"}, {"kernel": "forest"}, {})
    ]
    return {
        "weights": weights(model).tolist(),
        "kernels": [m.kernel_.gram(X[:5]).tolist() for m in drawn],
        "drawn": [weights(m).tolist() for m in drawn],
        "world": SIZE,
    }


def loading(folder):
    """Go on with a model of a file, together."""
    return weights(load(folder / "model.safetensors").partial_fit(X)).tolist()


def appearing():
    """Meet the others."""
    with joined(CPU) as processes:
        return processes.gather(RANK)


def main(names, folder):
    torch.set_num_threads(1)
    jobs = {
        "fits": fits, "streams": streams, "gradients": gradients, "messages": messages,
        "differences": partial(said_of, DIFFERENCES, folder),
        "failures": partial(said_of, FAILURES, folder),
        "killed": partial(killed, folder), "loading": partial(loading, folder),
        "hosts": hosts, "appearing": appearing,
        "first gone": partial(said_of, {"": [lambda _: fit(callbacks=[Killed(0)])]}, folder),
        "second gone": partial(said_of, {"": [lambda _: fit(callbacks=[Killed(1)])]}, folder),
    }  # fmt: skip
    found = {name: jobs[name]() for name in names.split(",")}
    (folder / f"{names}-{RANK}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
