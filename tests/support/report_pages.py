"""What lies in a page of `kctl spark report`."""

from __future__ import annotations

import json
import re
from typing import Any


def report_in(page: str) -> dict[str, Any]:
    """The report, as -o json has it. Raises ValueError when there is not one."""
    (body,) = re.findall(r'<script type="application/json" id="report">(.*?)</script>', page, re.DOTALL)
    return {name: _rows(value) for name, value in json.loads(body).items()}


def _rows(value: Any) -> Any:
    """Rows lie there by columns."""
    if not isinstance(value, dict) or set(value) != {"size", "columns"}:
        return value
    columns = {name: _rows(values) for name, values in value["columns"].items()}
    return [{name: values[place] for name, values in columns.items()} for place in range(value["size"])]
