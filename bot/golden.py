"""Golden questions: labelled questions whose documents a new index must find at least as well as the old one."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Annotated, Protocol

from pydantic import BaseModel, Field, ValidationError

from bot.retrieve import fuse
from ingest.embed import Embedder
from ingest.errors import ConfigError, IndexingError
from ingest.index import Vectors
from ingest.types import MEMBERS, Rankings, Where

K = 10
"""Documents of a search in which a golden question's own must be."""
_SECONDS = 60.0
_NAMED = 20
_SHOWN = 80
_EXAMPLE = 'write lines such as {"text": "How long is a refund possible?", "sources": ["docs:faq.md"]}'


class Golden(BaseModel):
    """One golden question; a line of an evaluation set is one too, its other fields are not read."""

    id: str = ""
    text: Annotated[str, Field(min_length=1)]
    sources: list[str]
    """Uris of the documents that answer it, `docs:refunds-faq.md`."""
    asker_readers: list[str] = [MEMBERS]
    history: list[dict[str, str]] = []


class Ranks(Protocol):
    """What can be searched: the live index, or a generation that nobody sees yet."""

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Return the separate rankings as `SearchIndex.rank` does."""
        ...


def read(path: Path) -> tuple[Golden, ...]:
    """Read the questions that one search of the documents can answer; raises ConfigError naming the line.

    Follow-ups and tickets are left out: it takes more than a search of the documents to find theirs.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"sync.golden {str(path)!r} cannot be read ({error}); check the name or take the setting out"
        ) from error
    questions: dict[str, Golden] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            question = Golden.model_validate_json(line)
        except ValidationError as error:
            raise ConfigError(
                f"sync.golden {str(path)!r} line {number} is {line[:_SHOWN]!r}, which is no question "
                f"({_why(error)}); {_EXAMPLE}"
            ) from error
        wanted = [uri for uri in question.sources if not uri.startswith(("ticket:", "tickets:"))]
        if wanted and not question.history:
            named = question.id or f"line {number}"
            if named in questions:
                raise ConfigError(
                    f"sync.golden {str(path)!r} line {number} has the id {named!r} of an earlier line; give it another"
                )
            questions[named] = question.model_copy(update={"sources": wanted, "id": named})
    if not questions:
        raise ConfigError(
            f"sync.golden {str(path)!r} holds no question that a search of the documents can answer; {_EXAMPLE}"
        )
    return tuple(questions.values())


def _why(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]


def without(questions: Sequence[Golden], withheld: Collection[str]) -> tuple[Golden, ...]:
    """Return the questions without the documents that must not be shown, and without those that have no other."""
    left = (
        question.model_copy(update={"sources": [uri for uri in question.sources if uri not in withheld]})
        for question in questions
    )
    return tuple(question for question in left if question.sources)


def refuse_unknown(questions: Sequence[Golden], *held: Callable[[str], Collection[str]]) -> None:
    """Raise ConfigError naming the documents of questions that none of the indexes holds.

    Each of `held` returns the uris of a source. What is in no index is never found, so that its recall cannot fall.
    """
    uris = cache(lambda source: frozenset(uri for of in held for uri in of(source)))
    unknown = [
        f"{uri!r} ({question.id})"
        for question in questions
        for uri in question.sources
        if uri not in uris(uri.partition(":")[0])
    ]
    if unknown:
        more = f", and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        raise ConfigError(
            f"the golden questions name documents that are not in the index: {', '.join(unknown[:_NAMED])}{more}; "
            f"write in sync.golden what answers cite, such as docs:faq.md, or index the folder"
        )


def recalls(
    questions: Sequence[Golden], index: Ranks, embedder: Embedder, candidates: int
) -> dict[str, float]:
    """Return for each question the share of its documents that are among the first K of one hybrid search.

    Raises IndexingError where an arm of the search fails.
    """
    found: dict[str, float] = {}
    for question in questions:
        vector: Vectors = embedder.embed([question.text], kind="query")[0]
        where = Where(frozenset(question.asker_readers))
        rankings = index.rank(question.text, vector, candidates, where, time.monotonic() + _SECONDS)
        if rankings.failed:
            arm, why = next(iter(rankings.failed.items()))
            raise IndexingError(
                f"golden question {question.id!r} cannot be searched by {arm} ({why}); try again"
            )
        uris = list(dict.fromkeys(hit.chunk.uri for hit in fuse(rankings.arms)))[:K]
        found[question.id] = fmean(uri in uris for uri in question.sources)
    return found


def compare(
    questions: Sequence[Golden], before: Mapping[str, float], after: Mapping[str, float], margin: float
) -> bool:
    """Raise IndexingError naming what got worse, where the mean recall fell by more than `margin`.

    Questions that were not asked before do not count; returns False where none was.
    """
    both = [question for question in questions if question.id in before]
    if not both:
        return False
    was, now = (fmean(of[question.id] for question in both) for of in (before, after))
    if was - now <= margin:
        return True
    worse = [question for question in both if after[question.id] < before[question.id]]
    named = [f"{q.id} ({before[q.id]:.2f} to {after[q.id]:.2f}) {q.text!r}" for q in worse[:_NAMED]]
    more = f", and {len(worse) - _NAMED} more" if len(worse) > _NAMED else ""
    raise IndexingError(
        f"the index was not rebuilt, because the golden questions find less: recall fell from {was:.3f} to {now:.3f}, "
        f"which is more than sync.golden_margin {margin:g}; worse are {'; '.join(named)}{more}; mend what was changed, "
        f"or change the questions if the documents are meant to have changed"
    )
