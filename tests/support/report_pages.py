"""The data in a page of `kctl spark report`."""

from __future__ import annotations

import json
import re
from typing import Any


def report_in(page: str) -> dict[str, Any]:
    """Return the report as in -o json. Raises ValueError if the page does not have exactly one."""
    (body,) = re.findall(r'<script type="application/json" id="report">(.*?)</script>', page, re.DOTALL)
    return {name: _rows(value) for name, value in json.loads(body).items()}


def _rows(value: Any) -> Any:
    """Return the rows, which the page stores by column."""
    if not isinstance(value, dict) or set(value) != {"size", "columns"}:
        return value
    columns = {name: _rows(values) for name, values in value["columns"].items()}
    return [{name: values[place] for name, values in columns.items()} for place in range(value["size"])]
