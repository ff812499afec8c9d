"""What a study is: data, scales, recipes and experiments, declared; nothing here runs."""

from dkae_study.declaration.claims import Claim, Judgement, Verdict, own_verdict, verdict
from dkae_study.declaration.contrasts import Contrast, score
from dkae_study.declaration.exhibits import Drawing, Findings, Table
from dkae_study.declaration.experiment import Experiment, Models, NetworkSpec, Outcome, Sweep
from dkae_study.declaration.study import Data, Part, Recipe, Scale, Study

__all__ = [
    "Claim",
    "Contrast",
    "Data",
    "Drawing",
    "Experiment",
    "Findings",
    "Judgement",
    "Models",
    "NetworkSpec",
    "Outcome",
    "Part",
    "Recipe",
    "Scale",
    "Study",
    "Sweep",
    "Table",
    "Verdict",
    "own_verdict",
    "score",
    "verdict",
]
