"""The Embedder protocol, and the choice of the embedder that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from ingest.config import BUNDLED_MODEL, EmbeddingSettings

Vectors = npt.NDArray[np.float32]
TextKind = Literal["passage", "query"]


class Embedder(Protocol):
    """Texts in, unit vectors out."""

    @property
    def name(self) -> str:
        """`provider/model`, part of the index's identity."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Most tokens of a text that the model sees; it is silently blind to the rest."""
        ...

    def count(self, text: str) -> int:
        """Return the text's tokens, special tokens included, however long it is."""
        ...

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        """Return a unit vector for each text, in their order: float32, shape (len(texts), dimensions)."""
        ...


def embedder_for(
    settings: EmbeddingSettings,
    *,
    on_load: Callable[[str], None] | None = None,
    threads: int | None = None,
) -> Embedder:
    """Return the embedder of the model that is named: ONNX Runtime for the bundled one, else sentence-transformers.

    Nothing is loaded before the first `embed`, which calls `on_load` with the model's name. `threads` bounds the
    threads that it computes with.
    """
    if settings.model == BUNDLED_MODEL:
        from ingest.embed.onnx import OnnxEmbedder

        return OnnxEmbedder(settings, on_load=on_load, threads=threads)
    from ingest.embed.sentence_transformers import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(settings, on_load=on_load, threads=threads)
