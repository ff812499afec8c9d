"""Classification and clustering on codes, which the paper leaves to future work (Section 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae.plotting import STYLE
from dkae.spectral import KernelPCA
from dkae_study.declaration import (
    Claim,
    Contrast,
    Drawing,
    Experiment,
    Findings,
    Judgement,
    Models,
    NetworkSpec,
    Outcome,
    Part,
    Scale,
    Table,
    own_verdict,
    score,
)
from dkae_study.engine.workshop import Workshop
from dkae_study.experiments.clusterings import clustering_scores, spectral_clustering
from dkae_study.report.charts import BARS, draw_row_dots, legend_above, name_rows, new_figure
from dkae_study.results import Job, Run, estimate
from dkae_study.results.numbers import count_seeds, estimate_of

N_CLASSES = 10
N_STARTS = 10
#: Inverse strength of the classifier's penalty.
REGULARISATION = 0.01


def _networks(scale: Scale, job: Job) -> dict[str, NetworkSpec]:
    return {
        "plain autoencoder": NetworkSpec(job.recipe, job.seed, 0.0, scale.width(job.recipe)),
        "dkAE": NetworkSpec(job.recipe, job.seed, 0.1, scale.width(job.recipe)),
    }


def _measure(workshop: Workshop, job: Job, models: Models) -> Outcome:
    train, test = workshop.parts["train"], workshop.parts["test"]
    rivals = partial(_rivals, workshop, train, test, job.seed)
    scores = dict(workshop.once(("code space", job.seed), rivals))
    for name, model in models.items():
        scores[name] = _evaluate_codes(model, train, test, job.seed)
    return Outcome(scores)


def _rivals(workshop: Workshop, train: Part, test: Part, seed: int) -> dict[str, Any]:
    """Return the scores without a network, which are the same for all recipes."""
    n_components = workshop.scale.settings["n_curve"]
    pca = KernelPCA(n_components, center=False, decoder=None, random_state=seed)
    pca.fit(train.X, gram=workshop.gram(seed, "train"))
    return {
        "raw input": _evaluate(train, test, seed),
        "kernel PCA": _evaluate_codes(pca, train, test, seed),
    }


def _evaluate_codes(model: Any, train: Part, test: Part, seed: int) -> dict[str, Any]:
    a, b = (part._replace(X=model.transform(part.X)) for part in (train, test))
    return _evaluate(a, b, seed)


def _evaluate(train: Part, test: Part, seed: int) -> dict[str, Any]:
    """Return the accuracy of a linear classifier, and how clusters of test rows fit the labels."""
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=REGULARISATION, max_iter=300))
    clusters = {
        "k-means": KMeans(N_CLASSES, n_init=N_STARTS, random_state=seed).fit_predict(test.X),
        "spectral": spectral_clustering(test.X, N_CLASSES, seed),
    }
    return {
        "linear classifier": float(classifier.fit(train.X, train.y).score(test.X, test.y)),
        **{name: clustering_scores(test.y, labels) for name, labels in clusters.items()},
    }


def _rivalry(runs: Sequence[Run], method: str) -> Iterator[list[float]]:
    """Yield the scores of dkAE, of raw input and of the plain autoencoder."""
    for representation in ("dkAE", "raw input", "plain autoencoder"):
        scores = [run.scores[representation][method] for run in runs]
        yield [score if isinstance(score, float) else score["nmi"] for score in scores]


def _judge(method: str, *, beyond_chance: bool) -> Callable[[Sequence[Run]], Judgement | None]:
    """Return what judges whether dkAE has a higher score than both of its rivals."""

    def decide(runs: Sequence[Run]) -> Judgement | None:
        if not runs:
            return None
        codes, raw, plain = (estimate(values) for values in _rivalry(runs, method))
        rival, margin, rule = max(raw.mean, plain.mean), 0.0, ""
        if beyond_chance:
            n_rows = runs[0].counts["rows"]["test"]
            margin = _chance(codes.mean, rival, n_rows)
            rule = (
                f"; the difference must be larger than chance makes that of two classifiers on "
                f"{n_rows:,} rows each, {margin:.3f} (strict: they see the same rows)"
            )
        return Judgement(
            f"{codes.format(3)} against {raw.mean:.3f} and {plain.mean:.3f}",
            own_verdict(codes.mean - rival > margin),
            codes.n,
            f"Against raw input and the plain autoencoder, by the mean ({codes.seeds}){rule}. The "
            "paper names it as future work.",
        )

    return decide


def _chance(p: float, q: float, n_rows: int) -> float:
    """Return the half-width of the 95 % interval of the difference of two shares."""
    return 1.96 * math.sqrt((p * (1 - p) + q * (1 - q)) / n_rows)


# --- figures and tables --------------------------------------------------------------------------


def _figures(findings: Findings) -> list[Drawing]:
    caption = (
        "How well the ten classes are found in each representation: a linear classifier, which "
        f"knows labels, and two clusterings, which do not. Higher is better. {BARS}"
    )
    alt = "Accuracy of a linear classifier, k-means and spectral clustering by representation"
    return [Drawing(f"{findings.experiment.name}-accuracy", _draw(findings), caption, alt)]


@mpl.rc_context(STYLE)
def _draw(findings: Findings) -> Figure:
    """Draw how well classes are found in each representation, with and without labels."""
    names = list(dict.fromkeys(name for run in findings.runs for name in run.scores))
    panels = {
        "linear classifier": ("linear classifier",),
        "k-means": ("k-means", "accuracy"),
        "spectral clustering": ("spectral", "accuracy"),
    }
    figure = new_figure(7.6, 0.4 * len(names) + 1.4, findings.note)
    for ax, (title, path) in zip(figure.subplots(1, 3, sharey=True), panels.items(), strict=True):
        found = {
            recipe: [estimate_of(findings.of(recipe), name, *path) for name in names]
            for recipe in findings.recipes
        }
        draw_row_dots(ax, found)
        ax.set(title=title, xlabel="accuracy (fraction)")
    name_rows(figure.axes[0], names)
    legend_above(figure)
    return figure


def _tables(findings: Findings) -> list[Table]:
    clusterings = {"k-means": "k-means", "spectral": "spectral clustering"}
    agreements = {"accuracy": "accuracy", "nmi": "NMI", "ari": "ARI"}
    paths = [("linear classifier",), *((c, a) for c in clusterings for a in agreements)]
    spans = (("", 1), ("linear classifier", 1), *((text, 3) for text in clusterings.values()))
    header = ["representation", "accuracy", *(list(agreements.values()) * len(clusterings))]
    tables = []
    for recipe in findings.recipes:
        runs = findings.of(recipe)
        names = dict.fromkeys(name for run in runs for name in run.scores)
        rows = [[name, *(estimate_of(runs, name, *path) for path in paths)] for name in names]
        if rows:
            caption = f"Classes in the code, {recipe} recipe, {count_seeds(runs)}"
            tables.append(Table(caption, header, rows, spans))
    return tables


CODE_SPACE = Experiment(
    name="code-space",
    title="Classification and clustering on codes",
    reference="future work, Section 5",
    summary="A linear classifier, k-means and spectral clustering on codes of dkAE, against raw "
    "input, kernel PCA scores and codes of a plain autoencoder.",
    data="networks and classifier from the training part; the test part is classified "
    "and clustered",
    methods=("raw input", "kernel PCA", "plain autoencoder (λ = 0)", "dkAE (λ = 0.1)"),
    n_seeds=5,
    metrics={
        "linear classifier": "accuracy of a logistic regression on standardised features",
        "k-means, spectral": "accuracy under the best matching, normalised mutual information, "
        "adjusted Rand index, of ten clusters",
    },
    constants={"clusters": N_CLASSES, "starts": N_STARTS, "C": REGULARISATION},
    assumptions=(
        "Ten clusters, one for each digit. The classifier is the same for all: C = 0.01, features "
        "standardised.",
        "That the classifier's difference must exceed chance was demanded when its numbers were "
        "known; before, any difference would do.",
    ),
    differences=("There is nothing in the paper to compare with.",),
    claims=(
        Claim(
            "A linear classifier is better on dkAE codes than on raw input and on codes of a "
            "plain autoencoder (accuracy)",
            "",
            _judge("linear classifier", beyond_chance=True),
        ),
        Claim(
            "k-means finds the digits better in dkAE codes than in raw input and in codes of a "
            "plain autoencoder (NMI)",
            "",
            _judge("k-means", beyond_chance=False),
        ),
    ),
    contrasts=(
        Contrast(
            "Accuracy of a linear classifier on codes",
            score("dkAE", "linear classifier"),
            higher_is_better=True,
            digits=3,
        ),
        Contrast(
            "NMI of k-means on codes",
            score("dkAE", "k-means", "nmi"),
            higher_is_better=True,
            digits=3,
        ),
    ),
    networks=_networks,
    measure=_measure,
    seconds=90,
    figures=_figures,
    tables=_tables,
)
