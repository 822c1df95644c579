"""What a question states of the tickets' fields: values, yes and no, days; and "open" where no status is called so."""

from __future__ import annotations

from bot.reading.lists.acts import called, doing
from bot.reading.lists.counted import FIELDS
from bot.reading.lists.draft import Draft, each
from bot.reading.lists.vocabulary import data
from ingest.atoms import UNITS
from ingest.words import akin, fold, stems, words


def openings(on: Draft) -> None:
    """Take "opened", and what the column of that day is called; "open" is a state unless days stand by it."""
    header = stems(on.names.headers.get("opened_at", ""))
    for i in range(len(on.said)):
        said = any(on.same(i, w) for w in data()["opened"])
        state = any(called(on, i, value) for value in on.names.status)
        if on.free([i]) and ((said and (not state or on.dated(i))) or (on.stems[i] in header and not state)):
            on.take([i], "-")
            on.opened = True


def valued(on: Draft) -> None:
    """Read values of status, priority and facets, customers and colleagues; a facet of yes and no by its name."""
    for place, at in on.places:
        digits = all(on.word(i).isdigit() for i in at)
        led = at[0] - 1 in on.called
        acts = place.field == "status" and not _finished(place.values[0]) and doing(on, at[0])
        if not on.free(at) or on.word(at[-1] + 1) in UNITS or (digits and not led):
            continue
        if acts:
            on.take(at, "-")
            continue
        facet = place.field if place.field not in FIELDS else ""
        day = on.dated(at[-1]) if place.field == "status" else None
        for value in place.values:
            free = on.used[at[0]] in ("", "facets" if facet else place.field)
            if free:
                on.take(at, "")
                on.state("facets" if facet else place.field, value, at, facet)
            else:
                on.put(on.used[at[0]], value, facet)
        if day and day.first == day.last == on.today:
            on.spans.remove(day)
        elif day and _finished(place.values[0]):
            # The tickets do not know when a status was reached.
            on.take(on.inside(day.start, day.end), "?")
            on.spans.remove(day)
    for facet, values in on.flags.items():
        yes = next((value for value in values if fold(value) in data()["yes"]), "")
        bare = " ".join(word for word in words(facet.replace("_", " ")) if word not in ("is", "has"))
        for at in on.phrases([bare, on.names.headers.get(facet, bare)]):
            beside = [at[-1] + 1] if on.any_of(at[-1] + 1, "yes", "no") else []
            on.state(
                "facets",
                yes or values[0],
                [*at, *beside],
                facet,
                un=any(on.any_of(i, "no") for i in beside),
            )


def _finished(status: str) -> bool:
    done = stems(" ".join(data()["finished"]))
    return any(stem in done for stem in stems(status))


def loosely(on: Draft) -> None:
    """Read "open" and "closed" where no status is called so: which of them are finished tells it."""
    known = {fold(value) for value in on.names.status}
    done = [value for value in on.names.status if _finished(value)]
    going = [value for value in on.names.status if value not in done]
    for word, meant in (("open", going), ("closed", done)):
        ways = (word, *data()["values"][word], *(data()["finished"] if word == "closed" else ()))
        for at in on.phrases(ways) if meant and done and word not in known else ():
            if word == "closed" or not doing(on, at[0]):
                for value in meant:
                    on.take(at, "")
                    on.state("status", value, at)
                on.assumed.append(f"“{on.text[on.said[at[0]][1] : on.said[at[-1]][2]]}”: {', '.join(meant)}")
    for i in range(len(on.said)):
        un = on.un(i)
        if un and on.free([i]) and done and un in stems(" ".join(data()["finished"])):
            on.take([i], "not_status")
            for value in done:
                on.put("not_status", value)
        elif un and on.free([i]) and any(akin(un, s) for s in stems(" ".join(data()["fields"]["assignee"]))):
            on.take([i], "lacks")
            on.put("lacks", "assignee")


def days(on: Draft) -> None:
    """Give the days to the action beside them, or to when the tickets were opened or updated."""
    header = stems(on.names.headers.get("updated_at", ""))
    updated = [
        i for i in range(len(on.said))
        if not on.used[i] and (on.any_of(i, "updated") or on.stems[i] in set(header) - set(stems("last date")))
    ]  # fmt: skip
    for n, span in enumerate(on.spans):
        at = on.inside(span.start, span.end)
        denied, _ = on.denied(at[0])
        due = "lacks" in on.filters and span.first == span.last == on.today
        has = len(each(on.filters.get("has"))) == 1 and not on.opened
        name = "updated" if updated else "has" if has else "opened"
        if denied or n or due:
            begun = [i for i in range(min([*denied, *at]), at[0]) if not on.used[i] or on.used[i] == "-"]
            on.take([*begun, *at], "?")
            continue
        on.take(updated, "-")
        on.filters |= {
            f"{name}_{end}": day.isoformat() for end, day in (("from", span.first), ("to", span.last)) if day
        }
