from typing import Any

snappy: Any
