"""Whom and which case a question means, and when it points at one without saying which."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.types import Gazetteer
from ingest.words import fold, mentions, words

_SAME = re.compile(
    r"\b(?:(?:(?:the|that|this) same|that|this|mismo|misma) (?:customer|client|shop|store|company|account|business|firm|buyer)s?"
    r"|(?:el |la )?mism[oa] (?:cliente|empresa|tienda|comprador))\b(?! (?:on|of) )"
)


_JUDGED = re.compile(
    r"^\W*(so |and |but )?(is|was|are|were) (he|she|they|it|(the|this|that|my|our|his|her|their) (?!plan)\w+( request)?) "
    r"(still |really |even )?(in time|on time|too late|late|ok|okay|fine|entitled|eligible|allowed|valid)\b",
    re.IGNORECASE,
)
_SOMEBODY = re.compile(
    r"\b(the|this|that|my|our) (customer|client|shop|store|user|buyer|ticket|case|account holder)\b(?!s)(?! (service|support|success))",
    re.IGNORECASE,
)


def customers(text: str, names: Gazetteer) -> tuple[str, ...]:
    """Return the customers that a text names, wholly or by a first word that only one of them has.

    A first word that is also a facet's value ("Cargo Couriers", of Cargo bikes) names nobody.
    """
    whole = mentions(text, names.customers)
    if whole:
        return whole
    values = {word for options in names.vocabulary.values() for value in options for word in words(value)}
    said = {word for word in re.findall(r"[A-ZÁÉÍÓÚÑ]\w{3,}", text) if not set(words(word)) & values}
    firsts: dict[str, list[str]] = {}
    for name in names.customers:
        firsts.setdefault(name.split()[0], []).append(name)
    return tuple(options[0] for first, options in firsts.items() if first in said and len(options) == 1)


def points_at_a_case(text: str) -> bool:
    """Tell whether a question points at somebody's case without saying whose."""
    return bool(_JUDGED.search(text) or _SOMEBODY.search(text))


def dangling(text: str, names: Gazetteer) -> str:
    """Return the words that point at a customer whom the text does not name, or an empty string."""
    if not names.customers or mentions(text, names.customers):
        return ""
    return next((text[match.start() : match.end()] for match in same_customer(text, names)), "")


def same_customer(text: str, names: Gazetteer) -> Iterator[re.Match[str]]:
    """Yield the words that point at a customer; on a desk with a Business plan, "that business" may be the plan."""
    values = [value for options in names.facets.values() for value in options]
    return (match for match in _SAME.finditer(fold(text)) if not mentions(match.group(), values))
