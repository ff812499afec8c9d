"""Names of parametrised tests, the same in every process."""

import re


def plain_id(value: object) -> str:
    """Return the repr without the addresses of functions, which differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
