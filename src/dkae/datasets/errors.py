"""The error for files of data."""


class DataFileError(ValueError):
    """A data file that exists but is not valid."""
