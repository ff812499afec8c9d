"""Strings are not vectors: a kernel of edit distances, and vectors that the decoder restores.

The Gram matrix comes from anywhere, here from the edit distance of words; X is any vector
description of the same objects, here how often each letter occurs. The codes then carry the edit
distance, and decode to letters.
"""

import numpy as np

from dkae import DeepKernelizedAutoencoder
from dkae.networks import Stack
from dkae.training import Optimization

STEMS = ["walk", "talk", "jump", "climb", "paint", "point", "count", "mount", "start", "smart"]
WORDS = [stem + end for stem in STEMS for end in ("", "s", "ed", "ing", "er", "ers")]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def edit_distance(a: str, b: str) -> int:
    """Levenshtein's distance, one row of its table at a time."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (x != y)))
    return row[-1]


distances = np.array([[edit_distance(a, b) for b in WORDS] for a in WORDS])
gram = np.exp(-distances / 2.0)
X = np.array([[word.count(letter) for letter in LETTERS] for word in WORDS], dtype=np.float32)

model = DeepKernelizedAutoencoder(
    16,
    network=Stack((64,)),
    alignment_weight=0.5,
    optimization=Optimization(learning_rate_init=0.005),
    random_state=0,
).fit(X, gram=gram)
print(f"alignment of codes with the edit-distance kernel {model.score(X, gram=gram):.4f}")

similarity = model.gram(X)
for word in ("walks", "painting", "smarter"):
    nearest = np.argsort(-similarity[WORDS.index(word)])[1:4]
    print(f"nearest to {word}: {', '.join(WORDS[i] for i in nearest)}")

between = model.inverse_transform(model.transform(X[[WORDS.index("walking")]]))[0]
letters = sorted(LETTERS, key=lambda letter: -between[LETTERS.index(letter)])[:7]
print(f"the code of 'walking' decodes to the letters {' '.join(letters)}")
