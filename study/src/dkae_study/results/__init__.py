"""What runs leave behind: one file each, the numbers in it, and the arrays to be drawn."""

from dkae_study.results.numbers import Estimate, estimate
from dkae_study.results.runs import (
    Job,
    Point,
    ResultFileError,
    Run,
    read_run,
    read_runs,
    select,
    write_run,
)

__all__ = [
    "Estimate",
    "Job",
    "Point",
    "ResultFileError",
    "Run",
    "estimate",
    "read_run",
    "read_runs",
    "select",
    "write_run",
]
