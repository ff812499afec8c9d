"""How much is read at a time, and what a file may announce before memory is taken for it.

A small file can announce anything.
"""

from dkae._support.memory import total_memory
from dkae.datasets.errors import DataFileError

#: Numbers of a table that are read at a time.
N_PIECE_NUMBERS = 2**22
#: No byte of a deflated file stands for more.
_LARGEST_RATIO = 1032


def n_rows_of_piece(width: int) -> int:
    """Return how many rows of so many numbers are read at a time."""
    return max(1, N_PIECE_NUMBERS // max(1, width))


def check_fits(where: object, n_bytes: int) -> None:
    """Refuse an array that is larger than the memory of this machine."""
    if n_bytes > (memory := total_memory()):
        raise DataFileError(
            f"{where} announces {n_bytes} bytes, and this machine has {memory}: take fewer rows, "
            "or a .npy file, of which only the rows in use are read"
        )


def check_ratio(where: object, n_bytes: int, n_compressed: int) -> None:
    """Refuse an announcement that so many compressed bytes cannot keep."""
    if n_bytes > _LARGEST_RATIO * n_compressed + _LARGEST_RATIO:
        raise DataFileError(
            f"{where} is damaged, it announces {n_bytes} bytes in {n_compressed} compressed ones: "
            "fetch it again"
        )
