"""A name that kernels import until they no longer describe their own state: goes then."""

from typing import Any

State = dict[str, Any]
