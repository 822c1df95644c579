"""How people at Velstrand ask whether a case is in time; `{ref}` is the case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrasing:
    """A question with `{ref}` in it; not `positive` where a literal "yes" means that the right is gone."""

    text: str
    positive: bool = True


QUESTIONS: Mapping[str, tuple[Phrasing, ...]] = {
    "warranty": (
        Phrasing("Is the buyer on {ref} still covered by the warranty?"),
        Phrasing("Is {ref} still within its guarantee?"),
        Phrasing("Was the claim on {ref} made within the warranty?"),
        Phrasing("Does the warranty apply to {ref}, or were they too late?"),
        Phrasing("Do we owe {ref} a repair under warranty?"),
        Phrasing("warranty ok for {ref}?"),
        Phrasing("Had the warranty run out when {ref} was claimed?", positive=False),
        Phrasing("Is it too late for a warranty claim on {ref}?", positive=False),
    ),
    "return": (
        Phrasing("Can the customer on {ref} return the bike?"),
        Phrasing("Is the return on {ref} within the window?"),
        Phrasing("Does the buyer on {ref} have the right to send the bike back?"),
        Phrasing("Are we obliged to take back the bike on {ref}?"),
        Phrasing("{ref} wants to give back the bike, did they ask in time?"),
        Phrasing("return request {ref}, still ok?"),
        Phrasing("Is it too late to send the bike on {ref} back?", positive=False),
        Phrasing("Has the return window closed for {ref}?", positive=False),
    ),
}

GENERAL: Mapping[str, tuple[str, ...]] = {
    "warranty": (
        "How long is the warranty on our bikes?",
        "How long is the guarantee on a {line} in the {region}?",
    ),
    "return": (
        "How long does a buyer have to return a bike?",
        "Can a {line} bike from the {region} be returned?",
    ),
}
"""Questions without a case: only the documents, or the facets said in words."""


def spellings(number: str) -> tuple[str, ...]:
    """Return the ways in which people write the reference of `number` ("BK26-0413")."""
    return (
        f"RMA {number}",
        number,
        f"#{number}",
        f"rma {number.lower()}",
        number.lower(),
        f"case RMA {number}",
    )
