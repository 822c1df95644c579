"""Counts and orders: by which field, how many each, in which order, at most how many."""

from __future__ import annotations

from bot.reading.lists.acts import counted
from bot.reading.lists.draft import Draft
from bot.reading.lists.vocabulary import data
from ingest.atoms import UNITS

FIELDS = ("customer", "status", "priority", "assignee")


def orders(on: Draft) -> None:
    for order, spoken in data()["order"].items():
        for at in on.phrases(spoken):
            _order(on, order, at, alone=True)
    for order, spoken in data()["numbered"].items():
        for at in on.phrases(spoken):
            _order(on, order, at, alone=on.word(at[-1]) == "last")


def _order(on: Draft, order: str, at: list[int], *, alone: bool) -> None:
    limit = 0
    for i in (at[-1] + 1, at[0] - 1, *([at[0] - 2] if on.noun(at[0] - 1) else [])):
        number = on.number(i)
        if number and 1 <= number <= 50 and on.free([i]) and on.word(i + 1) not in UNITS:
            limit, at = number, [*at, i]
    near = range(at[0] - 3, max(at) + 4)
    one = any(on.word(i) in (*data()["nouns"], "one") for i in near) and not limit
    if limit or one or (alone and on.word(at[0]) != "last"):
        on.take(at, "order")
        if order != "newest":
            on.filters["order"] = order
        if (limit or one) and order != "priority":
            on.filters["limit"] = limit or 1


def counts(on: Draft) -> None:
    """Read what to count by, and which field is empty: "per plan", "which customers", "without a plan"."""
    most = [i for i in range(len(on.said)) if on.any_of(i, "most") and not on.used[i]]
    found: list[tuple[int, str, list[int]]] = []
    for name, spoken in on.fields().items():
        for at in on.phrases(spoken):
            led = at[0] - 1
            while (
                led >= 0 and on.free([led]) and on.word(led) in ("the", "a", "our", "el", "la", "der", "le")
            ):
                led -= 1
            denied, doubt = on.denied(at[0])
            if denied and not doubt and name not in on.filters:
                on.take([*denied, *at], "lacks")
                on.put("lacks", name)
            elif (
                on.any_of(led, "by") or most or (name == "customer" and (counted(on, at[0]) or not on.nouns))
            ):
                found.append((0 if on.any_of(led, "by") else 1, name, at))
    for _, name, at in sorted(found):
        if "count_by" not in on.filters:
            on.filters["count_by"] = name
            on.take(at, "count_by")
        elif on.any_of(at[0] - 1, "by") and name != on.filters["count_by"] and name not in on.filters:
            on.take([at[0] - 1, *at], "?")
    if most and any(on.any_of(i, "who") for i in range(len(on.said))):
        on.filters.setdefault("count_by", "assignee")
    if any(True for _ in on.phrases(data()["counting"])) and not on.assumed:
        several = [*on.filters.items(), *on.filters.get("facets", {}).items()]
        for name, value in several:
            if isinstance(value, list) and name in (*FIELDS, *on.names.facets):
                on.filters.setdefault("count_by", name)


def amounts(on: Draft) -> None:
    """Read how many tickets somebody must have: "customers with more than two tickets"."""
    for phrase, (least, most) in data()["bounds"].items():
        for at in on.phrases([phrase]):
            place = at[0] - 1 if phrase.startswith("or ") else at[-1] + 1
            often = {"once": 1, "twice": 2}.get(on.word(place), 0)
            number = often or on.number(place)
            after = range(max(at[-1], place) + 1, max(at[-1], place) + 4)
            counted = often or any(
                on.noun(i) or (0 <= i < len(on.said) and on.used[i] == "has") for i in after
            )
            if not number or not on.free([place]) or on.word(after[0]) in UNITS:
                continue
            bounds = {
                k: number + v
                for k, v in (("at_least", least), ("at_most", most))
                if v != "none" and number + v > 0
            }
            known = counted and "count_by" in on.filters
            on.take([*at, place], "amount" if known else "?")
            on.filters |= bounds if known else {}
