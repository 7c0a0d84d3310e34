# The little that kctl calls of pyarrow.fs.
from typing import BinaryIO
from contextlib import AbstractContextManager

class FileInfo:
    base_name: str

class FileSelector:
    def __init__(self, base_dir: str, allow_not_found: bool = ..., recursive: bool = ...) -> None: ...

class FileSystem:
    @staticmethod
    def from_uri(uri: str) -> tuple[FileSystem, str]: ...
    def get_file_info(self, paths_or_selector: FileSelector) -> list[FileInfo]: ...
    def open_input_file(self, source: str) -> AbstractContextManager[BinaryIO]: ...
