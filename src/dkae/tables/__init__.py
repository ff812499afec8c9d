"""Tables in files: the one reader and writer of the command line.

``.npy``, ``.npz`` and IDX files hold an array of rows; ``.csv``, ``.tsv`` and ``.parquet`` hold
named columns and need pyarrow, the extra ``table``. Rows are read and written a piece at a time.
"""

from dkae.tables.columns import Layout, listed
from dkae.tables.reader import TableReader
from dkae.tables.table import Column, Table
from dkae.tables.writer import open_writer

__all__ = ["Column", "Layout", "Table", "TableReader", "listed", "open_writer"]
