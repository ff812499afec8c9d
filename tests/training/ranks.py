"""What each process of a test with several does: ``torchrun ranks.py JOB FOLDER``."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from dkae import DeepKernelizedAutoencoder, RowArray, load, save
from dkae._support.processes import joined
from dkae.alignment import MEASURES
from dkae.kernels import PairwiseKernel, center
from dkae.networks import Autoencoder, Layer
from dkae.training import FINE_TUNING, BatchSource, Engine, Optimization, Phase, Trainer, dkae_loss
from dkae.training.distributed import DistributedEngine

RANK, FOLDER = int(os.environ.get("RANK", 0)), Path(sys.argv[2] if len(sys.argv) > 2 else ".")
CPU = torch.device("cpu")
X = (load_digits().data[:600] / 16).astype(np.float32)
GAPPY = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.float32(np.nan), X)

SMALL = {
    "n_components": 6, "hidden_layer_sizes": (12,), "max_iter": 3, "steps_per_epoch": 10,
    "decoder_max_iter": 2, "batch_size": 40, "random_state": 0, "network": "stacked",
}  # fmt: skip
PCK = {"kernel": "pck", "kernel_params": {"max_components": 4, "n_initializations": 3}}


class Dropping(nn.Module):
    """A network of a user's: a decoder that is a module, and a parameter without a use."""

    def __init__(self, shape, n_components, generator=None):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(*shape, 10), nn.Tanh(), nn.Linear(10, n_components))
        self.decode = nn.Linear(n_components, *shape)
        self.idle = nn.Linear(2, 2)

    def encode(self, x):
        return self.encoder(x)


#: Fits that must end with the same weights in one process and in two.
FITS = {
    "stack": {},
    "fifty steps": {"max_iter": 5, "decoder_max_iter": 0},
    "alignment alone": {"alignment_weight": 1.0},
    "plain autoencoder": {"alignment_weight": 0.0},
    "pretraining": {"pretrain_max_iter": 2, "max_iter": 1},
    "kernel layer": {"network": "auto", "max_iter": "auto"},
    "kernel layer, end to end": {"network": "auto"},
    "cluster kernel": PCK | {"network": "auto"},
    "cluster kernel, nothing held": PCK | {"network": "auto", "cache_bytes": 0},
    "forest": {"kernel": "forest", "kernel_params": {"n_estimators": 9}},
    "deep forest": {"kernel": "forest", "kernel_params": {"n_estimators": 5, "max_depth": 10}},
    "centred": {"kernel": center(PairwiseKernel())},
    "distillation": {"distillation": 0.5},
    "noise, clipped": {"input_noise": 0.3, "max_grad_norm": 0.01},
    "early stopping": {"early_stopping": True, "validation_fraction": 0.2},
    "chunks": {"shuffle": "chunks"},
    "logdet": {"alignment": "logdet", "n_components": 50},
    "a network of the user's": {"network": Dropping},
    "gaps": {"missing": "mask"},
    "a memmap": {},
}


def rows_of(name):
    if name == "gaps":
        return GAPPY
    if name != "a memmap":
        return X
    path = FOLDER / "rows.npy"
    if not path.exists() and RANK == 0:
        np.save(FOLDER / "new.npy", (X * 16).astype(np.uint8))
        (FOLDER / "new.npy").rename(path)
    while not path.exists():
        pass
    return RowArray(np.load(path, mmap_mode="r"), scale=16)


def weights(model):
    return torch.cat([t.double().ravel() for t in model.network_.state_dict().values()])


def fits():
    """Train each model together, and alone; note how far the weights are apart."""
    found = {}
    for name, params in FITS.items():
        ours = DeepKernelizedAutoencoder(**SMALL | params).fit(rows_of(name))
        alone = DeepKernelizedAutoencoder(**SMALL | params, engine="single").fit(rows_of(name))
        a, b = weights(ours), weights(alone)
        found[name] = {
            "gap": float((a - b).abs().max()),
            "size": float(b.abs().max()),
            "weights": a.numpy().tobytes().hex(),
            "scale": ours.kernel_scale_,
            "scale alone": alone.kernel_scale_,
            "history": ours.history_,
            "history alone": alone.history_,
        }
    return found


def streams():
    """Passes and batches of one's own, together and alone."""
    found = {}
    for engine in ("auto", "single"):
        model = DeepKernelizedAutoencoder(**SMALL, engine=engine)
        for part in np.array_split(X, 3):
            model.partial_fit(part)
        # Nothing of it depends on the first rows, which are other ones in each process.
        fixed = {"gamma": 0.05, "standardize": False}
        loaded = DeepKernelizedAutoencoder(**SMALL, **fixed, engine=engine)
        # Each process has its half of every batch.
        own = slice(None) if engine == "single" else slice(20 * RANK, 20 * RANK + 20)
        batches = [torch.from_numpy(X[i : i + 40][own]) for i in range(0, 600, 40)]
        loaded.fit(_Again(batches))
        found[engine] = [weights(m).tolist() for m in (model, loaded)]
    return found


class _Again:
    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def gradients():
    """Return the gradient of each measure's loss, of two processes and of one, in both types."""
    found = {}
    gram = PairwiseKernel().fit(X).on(X)
    everyone = np.arange(len(X))
    with joined("auto", CPU) as processes:
        for name, measure in MEASURES.items():
            for dtype in (torch.float32, torch.float64):
                both = []
                for engine in (DistributedEngine(CPU, processes=processes), Engine(CPU)):
                    torch.manual_seed(0)
                    layer = Layer(64, 50, activation="tanh", output_activation="identity")
                    net = Autoencoder([layer]).to(dtype)
                    source = BatchSource(
                        X, gram, everyone, everyone[:0], 40, 5, np.random.default_rng(0), CPU,
                        processes=engine.processes,
                    )  # fmt: skip
                    trainer = Trainer(
                        net, partial(dkae_loss, measure=measure), source, [], engine, Optimization()
                    )
                    phase = Phase(FINE_TUNING, net, net.parameters, 1, alignment_weight=0.3)
                    batch = source.draw()
                    batch = batch._replace(
                        inputs=batch.inputs.to(dtype), targets=batch.targets.to(dtype),
                        prior_gram=batch.prior_gram.to(dtype),
                    )  # fmt: skip
                    engine.begin(net, 0.3)
                    trainer.batch_losses(phase, batch).total.backward()
                    both.append(torch.cat([p.grad.ravel() for p in net.parameters()]))
                gap = (both[0] - both[1]).norm() / both[1].norm()
                found[f"{name} {dtype}"] = float(gap)
    return found


def refusals():
    """What each process says where something is wrong in one of them."""

    def fit(rows=X, checkpoint=None, **params):
        DeepKernelizedAutoencoder(**SMALL | params).fit(rows, checkpoint=checkpoint)

    hole = X.copy()
    hole[317] = np.nan if RANK else hole[317]
    cases = {
        "parameters": lambda: fit(n_components=6 + RANK),
        "rows": lambda: fit(X + RANK),
        "number of rows": lambda: fit(X[: 600 - RANK]),
        "batch": lambda: fit(batch_size=41),
        "gap": lambda: fit(hole),
        "gap on disk": lambda: fit(RowArray(hole)),
        "folder": lambda: fit(checkpoint=FOLDER / ("not there/c" if RANK == 0 else "c")),
        "callback": lambda: fit(callbacks=[Failing()]),
        "engine": lambda: fit(engine="several"),
        "Ctrl-C": lambda: fit(callbacks=[Failing(KeyboardInterrupt())]),
    }
    said = {}
    for name, case in cases.items():
        try:
            case()
            said[name] = "nothing"
        except BaseException as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


class Failing:
    is_for_all = True

    def __init__(self, error=None):
        self.error = error or KeyError("of a callback")

    def on_epoch_end(self, trainer, phase, record):
        if RANK == 1:
            raise self.error


class KilledOnce:
    """Ends its process at a step, the first time that torchrun has started it."""

    is_for_all = True

    def on_step_end(self, trainer, phase):
        if os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0" and (
            RANK == 1 and trainer.epoch == 1 and trainer.step == 4
        ):
            os.kill(os.getpid(), signal.SIGKILL)


def killed():
    """Train with a checkpoint that is written at every step; one process is killed meanwhile."""
    import dkae.training.checkpoint as module

    module.EVERY_SECONDS = 0.0
    model = DeepKernelizedAutoencoder(**SMALL, callbacks=[KilledOnce()])
    model.fit(X, checkpoint=FOLDER / "state")
    if RANK == 0:
        save(model, FOLDER / "model.safetensors")
    alone = DeepKernelizedAutoencoder(**SMALL).fit(X)
    return {"same": bool((weights(model) == weights(alone)).all()), "rank": RANK}


def hosts():
    """Train in processes that several machines have started."""
    model = DeepKernelizedAutoencoder(**SMALL).fit(X)
    alone = DeepKernelizedAutoencoder(**SMALL, engine="single").fit(X)
    gap = float((weights(model) - weights(alone)).abs().max())
    # Without a seed the processes must agree on one, for kernels too.
    drawn = [
        DeepKernelizedAutoencoder(**SMALL | params | {"random_state": None, "max_iter": 1}).fit(X)
        for params in (PCK, {"kernel": "forest"}, {})
    ]
    kernels = [m.kernel_.gram(X[:5]).tolist() for m in drawn]
    drawn = [weights(m).tolist() for m in drawn]
    return {
        "gap": gap,
        "kernels": kernels,
        "drawn": drawn,
        "world": int(os.environ["WORLD_SIZE"]),
        "at": os.environ["MASTER_ADDR"],
    }


def loading():
    """Go on with a model of a file, together."""
    model = load(FOLDER / "model.safetensors").partial_fit(X)
    return {"weights": weights(model).tolist()}


JOBS = {f.__name__: f for f in (fits, streams, gradients, refusals, killed, hosts, loading)}

if __name__ == "__main__":
    torch.set_num_threads(1)
    result = JOBS[sys.argv[1]]()
    (FOLDER / f"{sys.argv[1]}-{RANK}.json").write_text(json.dumps(result))
