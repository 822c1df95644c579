"""The Source protocol: what changed since the revisions we know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Changed:
    """A document is new or has another revision."""

    uri: str
    revision: str
    content: bytes
    media_type: str
    """`text/markdown`, `text/plain` or `text/html`."""
    link: str
    path: str
    """Path inside the source, matched by the readers and authority globs."""
    folder: str = ""
    """Name of the folder that the source reads; a glob may begin with it."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A document is still there with the revision we know."""

    uri: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The source says that a document was removed."""

    uri: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A document is there but cannot be read; what was indexed before stays."""

    uri: str
    reason: str


@dataclass(frozen=True, slots=True)
class Complete:
    """The listing is whole: known documents that were not mentioned are gone. Without it nothing is deleted."""


Change = Changed | Unchanged | Gone | Failed | Complete


class Source(Protocol):
    """A place that documents come from."""

    @property
    def name(self) -> str:
        """Unique name; every uri starts with `name:`."""
        ...

    def changes(self, known: Mapping[str, str]) -> Iterator[Change]:
        """Yield what changed against `known` (uri -> revision), ending with `Complete` when the listing was whole."""
        ...
