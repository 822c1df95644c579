"""A search that is down, or half down: what still answers answers, and the answer says what did not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.app import Desk, build
from bot.types import Answer
from ingest.embed import SentenceTransformerEmbedder, Vectors
from ingest.errors import IndexingError
from ingest.index import Generation, GenerationInfo, SearchIndex
from ingest.types import Arm, Chunk, Document, DocumentInfo, Rankings, Where
from tests.desks import answer

FLAGSHIP = "Is the customer on ticket 4812 entitled to a refund?"
ARMS: tuple[Arm, ...] = ("lexical", "dense", "codes")
DOWN = "The documents could not be searched"
NO_MEANING = "Search by meaning did not answer, so that this rests on search by words and by codes alone."


class Faulty:
    """A SearchIndex over another one, of which chosen arms or everything fail, from one search on or until told."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self.failing: Collection[Arm] = ()
        self.down = False
        self.whole_searches = 0
        """Searches that go well before anything fails."""
        self.searches = 0

    @property
    def identity(self) -> str:
        return self._index.identity

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        self.searches += 1
        found = self._index.rank(query, vector, k, where, deadline)
        if self.searches <= self.whole_searches:
            return found
        self._refuse()
        arms = {arm: ranking for arm, ranking in found.arms.items() if arm not in self.failing}
        return Rankings(arms, {**found.failed, **dict.fromkeys(self.failing, "it broke")})

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        self._refuse()
        return self._index.documents(where)

    def _refuse(self) -> None:
        if self.down:
            raise IndexingError("the cluster 'http://secret.example' cannot be reached; start it")

    def revisions(self, source: str) -> Any:
        return self._index.revisions(source)

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        self._index.replace(document, chunks, vectors)

    def delete(self, uri: str) -> None:
        self._index.delete(uri)

    def flush(self) -> None:
        self._index.flush()

    def rebuild(self) -> Generation:
        return self._index.rebuild()

    def generations(self) -> tuple[GenerationInfo, ...]:
        return self._index.generations()

    def rollback(self) -> GenerationInfo:
        return self._index.rollback()

    def sweep(self) -> tuple[str, ...]:
        return self._index.sweep()

    def close(self) -> None:
        """Leave the other index open: it is somebody else's."""

    def __enter__(self) -> Faulty:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()


@pytest.fixture
def index(sample: Desk) -> Faulty:
    return Faulty(sample.index)


@pytest.fixture
def desk(
    sample: Desk, index: Faulty, embedder: SentenceTransformerEmbedder, tmp_path: Path
) -> Iterator[Desk]:
    """Return a desk over the sample company whose index fails as it is told."""
    settings = sample.settings.model_copy(update={"database_url": f"sqlite:///{tmp_path / 'state.db'}"})
    desk = build(settings, embedder, index=index)
    yield desk
    desk.close()


def says_once(answered: Answer, sentence: str) -> None:
    """Assert that the answer says so once, as a gap too, and shows nobody what the index said."""
    assert answered.text.count(sentence) == 1, answered.text
    assert sum(sentence.startswith(gap) or gap.startswith(sentence) for gap in answered.gaps) == 1, (
        answered.gaps
    )
    assert "it broke" not in answered.text
    assert "secret" not in answered.text


# --- one arm down ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        (("dense",), NO_MEANING),
        (
            ("lexical",),
            "Search by words did not answer, so that this rests on search by meaning and by codes alone.",
        ),
        (
            ("codes",),
            "Search by codes did not answer, so that this rests on search by words and by meaning alone.",
        ),
        (
            ("dense", "codes"),
            "Search by meaning and by codes did not answer, so that this rests on search by words alone.",
        ),
    ],
)
async def test_the_other_arms_answer_and_the_answer_says_so(
    desk: Desk, index: Faulty, failing: Sequence[Arm], said: str
) -> None:
    index.failing = failing
    answered = await answer(desk, "What does error ERR_SSO-4032 mean?")
    assert answered.shape == "partial", answered.text
    assert "ERR_SSO-4032" in answered.citations[0].quote, answered.citations
    says_once(answered, said)
    assert set(answered.steps[0].failed) == set(failing)
    flagship = await answer(desk, FLAGSHIP)
    assert flagship.verdict is not None, flagship.text
    assert flagship.verdict.decision == "yes"
    assert "13 September" in flagship.text
    assert flagship.shape == "partial"
    says_once(flagship, said)


# --- everything down ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "needed"),
    [
        ("Who is ticket 4812 assigned to?", "Lucía Navarro"),
        ("How many tickets are open, by priority?", "16 found"),
        ("Is ticket 4812 still open?", "open"),
    ],
)
@pytest.mark.parametrize("how", ["unreachable", "every arm"])
async def test_tickets_are_answered_from_their_table(
    desk: Desk, index: Faulty, how: str, question: str, needed: str
) -> None:
    index.down, index.failing = how == "unreachable", ARMS
    answered = await answer(desk, question)
    assert answered.shape == "partial", answered.text
    assert needed in answered.text
    says_once(answered, f"{DOWN}, so that this rests on the tickets alone.")


@pytest.mark.parametrize(
    "question",
    [
        FLAGSHIP,
        "What does error ERR_SSO-4032 mean?",
        "How long after a charge can a customer ask for a refund?",
        "Compare the refund windows of Team and Business",
        "When must ticket 4812 be answered?",
        "Has anybody else reported the problem of TCK-4849?",
    ],
)
@pytest.mark.parametrize("how", ["unreachable", "every arm"])
async def test_what_needs_the_documents_is_not_called_missing_from_them(
    desk: Desk, index: Faulty, how: str, question: str
) -> None:
    index.down, index.failing = how == "unreachable", ARMS
    answered = await answer(desk, question)
    assert answered.shape == "unavailable", answered.text
    assert answered.verdict is None
    assert "could not find" not in answered.text
    assert "14 days" not in answered.text
    assert "ask again" in answered.text
    assert desk.settings.words.contact in answered.text
    says_once(answered, DOWN)


async def test_the_next_question_is_whole_again(desk: Desk, index: Faulty) -> None:
    index.down = True
    assert (await answer(desk, FLAGSHIP)).shape == "unavailable"
    index.down = False
    answered = await answer(desk, FLAGSHIP)
    assert answered.shape == "answered"
    assert answered.gaps == ()
    assert answered.verdict is not None
    assert not any(step.failed for step in answered.steps)
