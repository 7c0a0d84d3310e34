# The little that the tests call of pyarrow.dataset.
from pathlib import Path

from pyarrow import Table

class Dataset:
    def to_table(self) -> Table: ...

def dataset(source: Path, *, format: str, partitioning: str, exclude_invalid_files: bool) -> Dataset: ...
