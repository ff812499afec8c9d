"""Options and --set reach the parameters of a map, also those of its parts."""

import shlex

import pytest

from dkae import DeepKernelizedAutoencoder, load
from dkae.cli.fit import pair
from tests.cli.helpers import fail, run, succeed

#: All at once: no option hides another.
OPTIONS = """--components 3 --kernel laplacian --gamma 0.5 --alignment centered --alignment-weight 0
--max-iter 2 --set steps_per_epoch=3 --batch-size 7 --standardize --device cpu
--seed 5 --hidden 5,3 --set missing=mask --set decoder_max_iter=0 --set cache_bytes=None
--set warm_start=True --set network__activation=sigmoid"""
EXPECTED = {
    "n_components": 3, "alignment": "centered", "alignment_weight": 0, "max_iter": 2, "kernel":
    "laplacian", "gamma": 0.5, "steps_per_epoch": 3, "batch_size": 7,
    "standardize": True, "device": "cpu", "random_state": 5, "network__hidden_layer_sizes": (5, 3),
    "missing": "mask", "decoder_max_iter": 0, "cache_bytes": None, "warm_start": True,
    "network__activation": "sigmoid",
}  # fmt: skip


def test_options_reach_the_map(folder, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(
        DeepKernelizedAutoencoder, "fit", lambda self, *args, **kwargs: seen.append(self)
    )
    run("fit", folder / "rows.npy", "-o", tmp_path / "m.safetensors", *shlex.split(OPTIONS))
    assert EXPECTED.items() <= seen[0].get_params().items()
    assert seen[0].verbose == 1


def test_without_options_the_map_has_its_defaults(folder, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(
        DeepKernelizedAutoencoder, "fit", lambda self, *args, **kwargs: seen.append(self)
    )
    run("fit", folder / "rows.npy", "-o", tmp_path / "m.safetensors", "--set", "verbose=0")
    assert seen[0].get_params() == DeepKernelizedAutoencoder(random_state=0).get_params()


@pytest.mark.parametrize(
    ("text", "value"),
    [(".5", 0.5), ("[1, 2]", [1, 2]), ("False", False), ("None", None), ("a=b", "a=b"),
     ("mlp", "mlp"), ("", ""), ("\0", "\0"), ("[" * 20_000, "[" * 20_000)],
    ids=lambda x: str(x)[:9],
)  # fmt: skip
def test_values_are_literals_or_text(text, value):
    assert pair(f"a={text}") == ("a", value)


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ("--hidden 5 --set network__activation=sigmoid", "network__activation", "sigmoid"),
        ("--map nystroem --set decoder=ridge --set missing=mask", "decoder", "ridge"),
        ("--map nystroem --set decoder=mlp --set decoder__max_iter=3", "decoder__max_iter", 3),
        ("--map kernel-pca --kernel poly --set kernel__degree=2", "kernel__degree", 2),
        ("--map kernel-pca --standardize", "standardize", True),
    ],
)
def test_every_command_takes_every_map(options, name, value, folder, tmp_path):
    options = shlex.split(options)
    learned = ["--max-iter", "1", "--set", "steps_per_epoch=5"] if "--map" not in options else []
    out, codes = tmp_path / "m.safetensors", tmp_path / "codes.csv"
    given = ["--components", "3", "--quiet", *learned, *options]
    succeed("fit", folder / "rows.csv", "-o", out, "--drop", "id,kind", *given)
    assert load(out).get_params()[name] == value
    succeed("transform", out, folder / "rows.csv", "-o", codes)
    succeed("inverse", out, codes, "-o", tmp_path / "rows.npy")
    succeed("interpolate", out, folder / "rows.csv", "--between", 0, 1, "-o", tmp_path / "p.csv")
    succeed("denoise", out, folder / "rows.csv", "--clean", folder / "rows.csv", "-o", codes,
            "--force")  # fmt: skip
    succeed("score", out, folder / "rows.csv")
    assert value in (True, "ridge") or str(value) in succeed("info", out).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--set verbsoe=1", "Invalid parameter 'verbsoe' for estimator DeepKernel"),
        ("--set =1", "Invalid parameter ''"),
        ("--set kernel__degre=2", "Invalid parameter 'degre' for estimator kernel 'rbf'"),
        ("--set callbacks__x=1", "callbacks__x: one of callbacks has no parameters of its own"),
        ("--map kernel-pca --batch-size 3", "Invalid parameter 'batch_size' for estimator Kernel"),
        ("--map kernel-pca --checkpoint state", "--checkpoint: kernel-pca has no training to res"),
        ("--map nystroem --hidden 3", "Invalid parameter 'network' for estimator InvertibleNyst"),
        ("--map nystroem --set decoder__alphas=[1]", "decoder='auto' has no parameters of its own"),
    ],
)
def test_a_parameter_that_a_map_lacks_is_named(options, message, folder, tmp_path):
    out = ["-o", tmp_path / "m.safetensors"]
    assert message in fail("fit", folder / "rows.npy", *out, *shlex.split(options))
