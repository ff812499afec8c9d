"""The MNIST handwritten digits: 20,000 that ship with the package."""

import hashlib
import io
from importlib.resources import files

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from dkae.datasets.idx import DataFileError

MNIST20K_SHA256 = "60c922e473f4670665da6979507cc079cb3672f265ae3d039272114f1c02c152"

_SPLIT_ENDS = [14_000, 17_000]  # 14,000 rows to train, 3,000 to validate, 3,000 to test
_DESCR = """\
MNIST handwritten digits, a subset of 20,000 images
---------------------------------------------------

:Instances: 20,000, drawn once at random from the 60,000 of the original training set
:Attributes: 784 pixels of a 28 x 28 image, row by row; 0 is background, 255 is ink
:Classes: 10, the digits 0 to 9
:Split: 14,000 training, 3,000 validation and 3,000 test rows, disjoint, at random
:Source: Yann LeCun, Corinna Cortes, Christopher J. C. Burges,
    "The MNIST database of handwritten digits"; derived from NIST Special Databases 1 and 3
:Licence: commonly distributed under CC BY-SA 3.0

`source_rows` holds the row number of each image in the original training set. The original test
set has no part in this subset: results on the `test` rows do not compare with published ones.
"""


def load_mnist20k(*, scaled: bool = False, split_seed: int = 0) -> Bunch:
    """Load 20,000 MNIST digits from the file that ships with the package.

    Parameters
    ----------
    scaled : bool, default=False
        Whether to return the pixels as float32 in [0, 1] instead of uint8.
    split_seed : int, default=0
        Seed of the split into training, validation and test rows. The images and their order
        do not depend on it.

    Returns
    -------
    Bunch
        `data`, uint8 or float32 of shape (20000, 784); `images`, a view of `data` of shape
        (20000, 28, 28); `target`, int64 of shape (20000,); the sorted row numbers `train`
        (14,000), `validation` (3,000) and `test` (3,000) of a disjoint split; `source_rows`, the
        row numbers in the original training set; `feature_names`; and `DESCR`.

    Raises
    ------
    DataFileError
        If the shipped file is damaged.

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
    return Bunch(
        data=data,
        images=data.reshape(-1, 28, 28),
        target=labels.astype(np.int64),
        source_rows=source_rows.astype(np.int64),
        feature_names=[f"pixel{i}" for i in range(1, data.shape[1] + 1)],
        DESCR=_DESCR,
        **_split(len(pixels), split_seed),
    )


def _read_shipped_file() -> bytes:
    """Return the content of the shipped file, after checking that it is intact."""
    file = files("dkae.datasets") / "data" / "mnist20k.npz"
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != MNIST20K_SHA256:
        raise DataFileError(
            f"{file} is damaged, its SHA-256 is {digest}: "
            f"expected {MNIST20K_SHA256}, reinstall the package dkae"
        )
    return content


def _split(n: int, seed: int) -> dict[str, npt.NDArray[np.int64]]:
    """Split the row numbers below `n` at random into training, validation and test rows."""
    # RandomState, because only its stream is promised never to change between NumPy versions.
    shuffled = np.random.RandomState(seed).permutation(n).astype(np.int64)
    parts = map(np.sort, np.split(shuffled, _SPLIT_ENDS))
    return dict(zip(("train", "validation", "test"), parts, strict=True))
