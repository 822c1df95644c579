"""Facets that are true or false, which people say by their name alone: "VIP cases", "non-VIP"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.filters.phrases import FALSE, TRUE
from bot.types import Gazetteer
from ingest.words import fold


def is_flag(values: Iterable[str]) -> bool:
    """Tell whether a facet's values are true and false, in whatever words."""
    folded = {fold(value) for value in values}
    return bool(folded) and folded <= TRUE | FALSE


def flag_name(facet: str) -> str:
    """Return what a flag is called in a sentence: "vip" of `is_vip`."""
    return re.sub(r"^(?:is|has) ", "", facet.replace("_", " "))


def turned(text: str, before: str, names: Gazetteer) -> str:
    """Return a question with its flags as another text says them: "and non-VIP?"."""
    for facet in (facet for facet, values in names.facets.items() if is_flag(values)):
        said = re.compile(rf"\b(?:(?:non|not|no)[- ]?)?{re.escape(flag_name(facet))}s?\b", re.IGNORECASE)
        if found := said.search(text):
            before = said.sub(found.group().replace("\\", ""), before, count=1)
    return before
