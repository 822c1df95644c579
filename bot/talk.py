"""Small talk in words that no pattern lists: near enough in meaning to an example of a meta request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bot.gate import Meta, asks
from ingest.atoms import codes
from ingest.embed import Embedder
from ingest.words import words

NEAR = 0.5
"""Cosine from which a message means what an example means; questions of the sample come no nearer than 0.42."""
LONGEST = 14
"""Words; whoever writes more wants something."""
_DESK = re.compile(
    r"\b(tickets?|customers?|refunds?|invoices?|cases?|did we (answer|do)|answered|with it|is it)\b"
)
"""Words of the desk's work, or that point at something said before."""
EXAMPLES: Mapping[Meta, Sequence[str]] = {
    "greeting": (
        "hello", "good morning everyone", "hi there, how are you?", "hey, are you there?", "are you awake?", "nice to meet you",
        "I am back from holiday", "how was your weekend?", "just testing if you work", "sorry, wrong channel", "is this thing on?",
    ),
    "thanks": (
        "thank you very much", "great, that helped a lot", "perfect, that is all I needed", "you are the best", "good bot",
        "that answers my question, cheers", "that is exactly what I was looking for", "never mind, I found it", "ok, got it",
        "ok thanks, I will tell the customer", "no further questions", "thx, legend!", "nice one", "sorry, ignore that",
        "great, merci beaucoup", "no need any more, sorted",
    ),
    "goodbye": (
        "goodbye", "see you tomorrow", "I am done for today, see you on Monday", "have a nice weekend", "good night",
        "off to lunch", "talk to you later",
    ),
    "help": (
        "what can you do?", "how do I use you?", "what kind of questions can I ask you?", "can you help me?",
        "how does this bot work?", "what should I type?", "give me an example of a question", "I am new here",
    ),
    "sources": (
        "what do you know?", "which documents can you read?", "where do your answers come from?", "where did you learn this?",
        "how up to date is your information?", "when was your index last updated?", "list your sources", "what is in your knowledge base?",
    ),
    "about": (
        "who are you?", "are you a robot or a human?", "are you a person or a bot?", "is there a real person behind this?",
        "what is your name?", "who made you?", "tell me a joke", "are you ChatGPT?", "do you have feelings?", "do you ever sleep?",
        "you are useless", "how smart are you?", "what model are you running on?", "which language model do you use?",
        "can I trust your answers?", "how reliable are you?", "are your answers always right?", "your answer was wrong, whom do I tell?",
        "who do I talk to if you are wrong?", "do you store what I ask you?", "who can see what I ask you?", "do you learn from our chats?",
        "do you remember what I asked earlier?",
        "how do I get better answers from you?", "what can you not do?",
    ),
    "summary": (
        "summarise this thread", "what have we talked about so far?", "give me a recap of this conversation",
        "sum up what was said here", "what did we find out in this thread?", "what was my last question?", "what did I ask you before?",
    ),
}  # fmt: skip
# The bundled model reads English; other languages are left to the gate's patterns.


class Talk:
    """Compares messages with the examples; these are embedded once, at the first message."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def meta(self, text: str, names: Sequence[str]) -> Meta | None:
        """Return which meta request a message is near to, or None; one that names anything of the desk's is a question."""
        said = words(text)
        named = any(word in said for name in names for word in words(name))
        if (
            not said
            or len(said) > LONGEST
            or named
            or codes(text)
            or asks(text) & {"aggregate", "similar", "compare"}
            or _DESK.search(" ".join(said))
        ):
            return None
        near = self._vectors @ self._embedder.embed([text], kind="query")[0]
        best = int(np.argmax(near))
        return self._labels[best] if near[best] >= NEAR else None

    @cached_property
    def _labels(self) -> list[Meta]:
        return [meta for meta, examples in EXAMPLES.items() for _ in examples]

    @cached_property
    def _vectors(self) -> npt.NDArray[np.float32]:
        texts = [example for examples in EXAMPLES.values() for example in examples]
        return self._embedder.embed(texts, kind="passage")
