"""Words to look for in the tickets' text: quoted, codes, after "about", before "tickets"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.reading.lists.draft import Draft
from bot.reading.lists.vocabulary import data, frame
from ingest.atoms import codes
from ingest.words import fold, stems

_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{3,60})[\"”»]|(?<!\w)['‘]([^'‘’]{3,60})['’](?!\w)")


def quoted(on: Draft) -> None:
    for match in _QUOTED.finditer(on.text):
        if at := on.inside(*match.span()):
            _search(on, [at], _deniedabout(on, at[0]), (match[1] or match[2]).strip())


def coded(on: Draft) -> None:
    found = codes(on.text)
    for code in found:
        start = fold(on.text).find(code)
        at = on.inside(start, start + len(code))
        whole = not any(code != other and code in other for other in found)
        if whole and at and on.free(at) and not any(i in on.named for i in at):
            denied, _ = on.denied(at[0])
            _search(on, [at], denied or _deniedabout(on, at[0]), code)


def about_ends(on: Draft) -> list[list[int]]:
    return [at[-1:] for at in on.phrases(data()["about"])]


def _deniedabout(on: Draft, at: int) -> list[int]:
    """Return what denies the "about" before a place, and that."""
    for (end,) in about_ends(on):
        if 0 < at - end <= 3 and (denied := on.denied(end)[0]):
            return [*denied, end]
    return []


def about(on: Draft) -> None:
    """Look for the words after "about" and before "tickets" that are nothing else."""
    for at in list(on.phrases(data()["about"])):
        runs: list[list[int]] = [[]]
        for i in range(at[-1] + 1, len(on.said)):
            if on.any_of(i, "either") and runs[-1]:
                runs.append([])
            elif (
                on.used[i]
                or on.noun(i)
                or (runs[-1] and (on.any_of(i, "clauses", "auxiliaries") or on.broken(i - 1)))
            ):
                break
            elif on.stems[i]:
                runs[-1].append(i)
        if runs := [run for run in runs if run]:
            _search(on, runs, on.denied(at[0])[0])
            on.take(at, "-")
    for noun in on.nouns:
        run: list[int] = []
        while noun - len(run) > 0 and _searched(on, noun - len(run) - 1):
            run.insert(0, noun - len(run) - 1)
        if run:
            _search(on, [run], on.denied(run[0])[0])


def _searched(on: Draft, i: int) -> bool:
    plain = on.stems[i] in frame() or i in on.called or on.denies(i) or on.any_of(i, "vague")
    return bool(on.free([i]) and on.stems[i] and not plain and not on.number(i) and not on.broken(i))


def _search(on: Draft, runs: Sequence[Sequence[int]], denied: Sequence[int], said: str = "") -> None:
    """Look for words in the tickets' text, in each way that the settings know; what no ticket holds is not understood."""
    name = "not_text" if denied else "text"
    on.take(denied, name)
    for run in runs:
        kept = [i for i in run if said or on.holds(_single(on, i))]
        on.take(run, "?")
        on.take(kept, name)
        if text := said or " ".join([_single(on, i) for i in kept]):
            ways = next((w for w in _ways(on) if any(stems(way) == stems(text) for way in w)), ())
            on.put(name, text)
            for way in ways:
                if not any(other != way and fold(other) in fold(way) for other in (text, *ways)):
                    on.put(name, f'"{way}"' if " " in way else way)


def _ways(on: Draft) -> Iterator[tuple[str, ...]]:
    return ((head, *others) for head, others in on.names.synonyms.items())


def _single(on: Draft, i: int) -> str:
    word = on.word(i)
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return (
        word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
    )
