"""Which columns of a ticket file look like personal data, by what they are called and by what they hold."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from ingest.words import fold

SLIP = 0.05
"""Share of a column's values from which on one that reaches somebody is no slip of the pen."""
_REACHING: Mapping[str, str] = {
    "mail": "e-mail addresses",
    "handle": "handles",
    "phone": "telephone numbers",
    "iban": "bank accounts",
    "ip": "IP addresses",
}
_VALUE = re.compile(
    r"(?P<mail>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)|(?<![\w@./])(?P<handle>@[^\W\d]\w+)"
    r"|(?P<phone>(?<![\w+])(?:\+\d|\(\+?\d{1,5}\) ?\d)[\d ()./-]{4,18}\d(?!\w))"
    r"|\b(?P<iban>[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?)\b"
    r"|(?<![\w.])(?P<ip>\d{1,3}(?:\.\d{1,3}){3})(?![\w.])"
)
"""What reaches somebody, anywhere in a cell."""


def name_words(name: str) -> list[str]:
    """Return the words of a column's name: `contactEmail` is `contact email`."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[^\W_]+", fold(unicodedata.normalize("NFKC", apart)))


def by_name(column: str) -> str:
    """Return why a column is personal by what it is called, empty where it is not."""
    said, words = name_words(column), _words()
    others = [token for token in said if token not in words["names"]]
    telling = [token for token in said if token in words["words"]]
    if not telling and "".join(said) in words["words"]:
        # "WhatsApp" is two words to the eye of a program.
        telling = said
    if not telling and not words["kinds"] & set(said):
        telling = [token for token in said if token in words["people"]]
    if not telling and (words["beside"] | words["people"]).issuperset(others):
        telling = [token for token in said if token in words["names"]]
    if not telling and words["by"] & set(said) and words["did"] & set(said):
        telling = [token for token in said if token in words["did"] | words["by"]]
    return f"called {' '.join(telling)!r}" if telling else ""


def by_values(values: Sequence[str], share: float = SLIP) -> str:
    """Return why a column is personal by what this share of its values holds, empty where it is not."""
    found = [match.lastgroup or "" for value in values if (match := _VALUE.search(value))]
    if not found or len(found) < share * len(values):
        return ""
    return f"it holds {_REACHING[max(sorted(set(found)), key=found.count)]}"


@cache
def _words() -> Mapping[str, frozenset[str]]:
    data = tomllib.loads(resources.files("ingest.tickets").joinpath("personal.toml").read_text("utf-8"))
    return {name: frozenset(map(fold, listed)) for name, listed in data.items()}
