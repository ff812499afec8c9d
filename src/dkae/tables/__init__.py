"""Tables in files: the one reader and writer of the command line.

``.npy`` files and built-in data sets hold an array of rows; ``.csv``, ``.tsv`` and ``.parquet``
hold named columns and need pyarrow, the extra ``table``. Rows are read and written a piece at a
time.
"""

from dkae.tables.arrow import Column
from dkae.tables.columns import listed
from dkae.tables.table import Table, TableReader, write

__all__ = ["Column", "Table", "TableReader", "listed", "write"]
