"""The MNIST handwritten digits: 20,000 that ship with the package.

They were drawn once at random from the 60,000 of the original training set; ``data/README.md``
names their source and licence. The original test set has no part in them: results on the `test`
rows do not compare with published ones.
"""

import hashlib
import io
from importlib.resources import files

import numpy as np
from sklearn.utils import Bunch

__all__ = ["load_mnist20k"]

MNIST20K_SHA256 = "60c922e473f4670665da6979507cc079cb3672f265ae3d039272114f1c02c152"

_SPLIT_ENDS = [14_000, 17_000]  # 14,000 rows to train, 3,000 to validate, 3,000 to test


def load_mnist20k(*, scaled: bool = False) -> Bunch:
    """Load 20,000 MNIST digits from the file that ships with the package.

    Parameters
    ----------
    scaled : bool, default=False
        Whether to return the pixels as float32 in [0, 1] instead of uint8.

    Returns
    -------
    Bunch
        `data`, uint8 or float32 of shape (20000, 784), 28 x 28 pixels row by row; `images`, a view
        of `data` of shape (20000, 28, 28); `target`, int64 of shape (20000,); the sorted ids
        `train` (14,000), `validation` (3,000) and `test` (3,000) of a disjoint split; and
        `source_rows`, the ids in the original training set.

    Examples
    --------
    >>> from dkae.datasets import load_mnist20k
    >>> digits = load_mnist20k(scaled=True)
    >>> X_train, y_train = digits.data[digits.train], digits.target[digits.train]
    >>> X_train.shape
    (14000, 784)
    """
    with np.load(io.BytesIO(_read_shipped_file())) as arrays:
        pixels, labels, source_rows = (arrays[k] for k in ("images", "labels", "source_rows"))
    # With dtype, NumPy converts block by block, without a float64 copy of everything.
    data = np.divide(pixels, 255, dtype=np.float32) if scaled else pixels
    # RandomState, because only its stream is promised never to change between NumPy versions.
    shuffled = np.random.RandomState(0).permutation(len(pixels)).astype(np.int64)
    train, validation, test = map(np.sort, np.split(shuffled, _SPLIT_ENDS))
    return Bunch(
        data=data,
        images=data.reshape(-1, 28, 28),
        target=labels.astype(np.int64),
        source_rows=source_rows.astype(np.int64),
        train=train,
        validation=validation,
        test=test,
    )


def _read_shipped_file() -> bytes:
    """Return the content of the shipped file, after checking that it is intact."""
    file = files("dkae.datasets") / "data" / "mnist20k.npz"
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != MNIST20K_SHA256:
        raise ValueError(
            f"{file} is damaged, its SHA-256 is {digest}: "
            f"expected {MNIST20K_SHA256}, reinstall the package dkae"
        )
    return content
