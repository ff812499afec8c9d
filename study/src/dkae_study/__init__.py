"""The study of the paper: its experiments, what runs them, and the page of their results."""

__version__ = "0.2.0"
