"""Options and --set reach the parameters of a map, also those of its parts."""

import shlex

import pytest
from sklearn.base import BaseEstimator

import dkae
from dkae import load
from dkae.cli.parameters import build_map, parse_options, parse_pairs
from tests.cli.helpers import TINY, fail, needs_maps, run, succeed


@pytest.mark.parametrize(
    ("option", "name", "value"),
    [
        ("--set missing=mask", "missing", "mask"),
        ("--set decoder_max_iter=0", "decoder_max_iter", 0),
        ("--set cache_bytes=null", "cache_bytes", None),
        ("--set warm_start=True", "warm_start", True),
        ("--components 3", "n_components", 3),
        ("--kernel laplacian", "kernel", "laplacian"),
        ("--gamma 0.5", "gamma", 0.5),
        ("--gamma scale", "gamma", "scale"),
        ("--alignment centered", "alignment", "centered"),
        ("--alignment-weight 0", "alignment_weight", 0),
        ("--max-iter 2", "max_iter", 2),
        ("--steps-per-epoch 3", "steps_per_epoch", 3),
        ("--steps-per-epoch samples", "steps_per_epoch", "samples"),
        ("--batch-size 7", "batch_size", 7),
        ("--input-noise 0.1", "input_noise", 0.1),
        pytest.param("--standardize", "standardize", True, marks=needs_maps),
        ("--device cpu", "device", "cpu"),
        ("--seed 5", "random_state", 5),
        ("--set kernel__degree=2 --kernel poly --gamma 0.5", "kernel__degree", 2),
        ("--set kernel__degree=2 --kernel poly --gamma 0.5", "kernel__gamma", 0.5),
    ],
)
def test_an_option_reaches_the_map(option, name, value, folder, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, *shlex.split(option))
    assert load(out).get_params()[name] == value


def options_of(**options):
    """Return parameters of options, by the rule of the command line."""
    return parse_options(options, {name: f"--{name}" for name in options})


class Map(BaseEstimator):
    def __init__(self, kernel="rbf", gamma="median", decoder="auto", random_state=None):
        self.kernel, self.gamma = kernel, gamma
        self.decoder, self.random_state = decoder, random_state


@pytest.fixture
def own_map(monkeypatch):
    monkeypatch.setattr(dkae, "Map", Map, raising=False)
    monkeypatch.setitem(build_map.__globals__["MAPS"], "own", "Map")


def test_options_that_a_map_lacks_are_named(own_map):
    assert build_map("own", None, options_of(gamma="2")).gamma == 2
    with pytest.raises(ValueError, match="--batch_size: the map own has no parameter 'batch_size'"):
        build_map("own", None, options_of(batch_size=3))
    with pytest.raises(ValueError, match=r"--set gama: .*'gama'; did you mean 'gamma'\?"):
        build_map("own", None, parse_pairs(("gama=3",)))
    with pytest.raises(ValueError, match="--recipe paper sets parameters of the autoencoder"):
        build_map("own", "paper", {})


def test_parts_are_set_before_their_parameters(own_map):
    pairs = parse_pairs(("kernel__degree=2", "gamma=3", "kernel=poly"))
    kernel = build_map("own", None, pairs).kernel
    assert (kernel.metric, kernel.degree, kernel.gamma) == ("poly", 2, 3)
    with pytest.raises(ValueError, match=r"'kernel__degre'; did you mean 'kernel__degree'\?"):
        build_map("own", None, parse_pairs(("kernel__degre=1",)))
    with pytest.raises(ValueError, match="name the decoder first, such as --set decoder=ridge"):
        build_map("own", None, parse_pairs(("decoder__alphas=1",)))


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5", 0.5), ("[1, 2]", [1, 2]), ("false", False), ("False", False), ("None", None),
     ("mlp", "mlp"), ("", ""), ("[" * 20_000, "[" * 20_000)],
    ids=lambda x: str(x)[:9],
)  # fmt: skip
def test_values_are_json_or_text(text, value):
    assert parse_pairs((f"a={text}",)) == {"a": ("--set a", value)}


@pytest.mark.parametrize(("text", "sizes"), [("5,3", (5, 3)), ("", ()), ("8,x", (8, "x"))])
def test_hidden_layers_belong_to_the_network(text, sizes):
    assert options_of(hidden_layer_sizes=text) == {
        "network__hidden_layer_sizes": ("--hidden_layer_sizes", sizes)
    }


@needs_maps
@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ("--hidden 5,3", "network__hidden_layer_sizes", (5, 3)),
        ("--set network__activation=sigmoid", "network__activation", "sigmoid"),
        ("--recipe paper --hidden 5 --set pretrain_max_iter=1", "network__activation", "sigmoid"),
        ("--map nystroem --set decoder=ridge", "decoder", "ridge"),
        ("--map nystroem --set decoder=mlp --set decoder__max_iter=3", "decoder__max_iter", 3),
        ("--map kernel-pca --kernel poly --set kernel__degree=2", "kernel__degree", 2),
        ("--map kernel-pca --standardize", "standardize", True),
    ],
)
def test_every_map_takes_its_parameters(options, name, value, folder, tmp_path):
    options = shlex.split(options)
    learned = ["--max-iter", "1", "--steps-per-epoch", "5"] if "--map" not in options else []
    out, codes = tmp_path / "m.safetensors", tmp_path / "codes.csv"
    given = ["--components", "3", "--quiet", *learned, *options]
    succeed("fit", folder / "rows.csv", "-o", out, "--drop", "id,kind", *given)
    found = load(out).get_params()[name]
    assert tuple(found) == value if isinstance(value, tuple) else found == value
    succeed("transform", out, folder / "rows.csv", "-o", codes)
    succeed("inverse", out, codes, "-o", tmp_path / "rows.npy")
    succeed("denoise", out, folder / "rows.csv", "--clean", folder / "rows.csv", "-o", codes,
            "--force")  # fmt: skip
    succeed("score", out, folder / "rows.csv", "--baselines")
    assert "learnt" not in run("info", out).stderr


@needs_maps
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--map kernel-pca --batch-size 3", "--batch-size: the map kernel-pca has no parameter"),
        ("--map kernel-pca --checkpoint state", "--checkpoint: the map kernel-pca has no training"),
        ("--map nystroem --hidden 3", "--hidden: the map nystroem has no parameter"),
        ("--map nystroem --recipe paper", "--recipe paper sets parameters of the autoencoder"),
        (
            "--map nystroem --set decoder__alphas=[1]",
            "name the decoder first, such as --set decoder=ridge",
        ),
    ],
)
def test_a_map_rejects_the_options_of_another(options, message, folder, tmp_path):
    out = ["-o", tmp_path / "m.safetensors"]
    assert message in fail("fit", folder / "rows.npy", *out, *shlex.split(options))
