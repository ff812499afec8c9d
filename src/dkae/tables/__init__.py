"""Tables in files: the one reader and writer of the command line.

``.npy``, ``.npz`` and IDX files hold an array of rows; ``.csv``, ``.tsv`` and ``.parquet`` hold
named columns and need pyarrow, the extra ``table``. Rows are read and written a piece at a time.
"""

from dkae.tables.columns import Layout
from dkae.tables.reader import TableReader, read_table
from dkae.tables.table import Column, Table
from dkae.tables.writer import ENDINGS, open_writer

__all__ = ["ENDINGS", "Column", "Layout", "Table", "TableReader", "open_writer", "read_table"]
