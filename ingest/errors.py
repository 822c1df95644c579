"""The error tree that both packages share.

TwohopError                 everything a person can mend; the text names the value and the next step
├── ConfigError             a setting cannot be used
│   └── DatabaseAway        the ticket database does not answer at the start; its settings may be right
├── SourceError             a source could not be listed or a document could not be read
│   └── UnreadableDocument  one document is skipped by name; the rest is indexed
│       └── DocumentWithheld    one document must not be shown; what the index held of it leaves
├── IndexingError           the index cannot be used or written
│   ├── IndexAway           its server does not answer, or not yet; its settings may be right
│   ├── IdentityMismatch    the index was built by another model, chunker or schema
│   └── DocumentRefused     one document cannot be written; it is skipped by name and the rest is indexed
├── TicketImportError       a ticket file cannot be read at all (a bad row is reported, not raised)
├── TicketsUnavailable      the ticket database does not answer; the text is for whoever asked
├── ModelError              the language model or the embedding model cannot be used
└── DeadlineExceeded        a call ran past its deadline
"""

from __future__ import annotations


class TwohopError(Exception):
    """Base of every error whose text is written for a person."""


class ConfigError(TwohopError):
    """A setting cannot be used."""


class DatabaseAway(ConfigError):
    """The ticket database does not answer at the start; its settings may be right."""


class SourceError(TwohopError):
    """A source could not be listed."""


class UnreadableDocument(SourceError):
    """One document cannot be read; it is skipped by name and the rest is indexed."""


class DocumentWithheld(UnreadableDocument):
    """One document must not be shown: it is not published, or nobody can tell who may read it; it leaves the index."""


class IndexingError(TwohopError):
    """The index cannot be used or written."""


class IndexAway(IndexingError):
    """The index's server cannot be reached, does not answer in time or is not ready; its settings may be right."""


class IdentityMismatch(IndexingError):
    """The stored index was built by another embedding model, chunker or schema."""


class DocumentRefused(IndexingError):
    """One document cannot be written; what the index held of it stays and the rest is indexed."""


class TicketImportError(TwohopError):
    """A ticket file cannot be read at all."""


class TicketsUnavailable(TwohopError):
    """The ticket database cannot be reached, is too slow or refuses; the text is for whoever asked.

    `reason` says what the matter is and the next step, for whoever runs Twohop; it holds no secret and no question.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class ModelError(TwohopError):
    """A language model or an embedding model cannot be used; `plainly` says why in words for whoever asked."""

    def __init__(self, message: str, plainly: str = "the language model could not be used") -> None:
        super().__init__(message)
        self.plainly = plainly


class DeadlineExceeded(TwohopError):
    """A call ran past its deadline."""
