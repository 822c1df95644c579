"""The embedder that runs any other model with sentence-transformers on this machine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.config import BUNDLED_MODEL, EmbeddingSettings
from ingest.embed import TextKind, Vectors
from ingest.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_REACH_SECONDS = 10.0

_log = logging.getLogger(__name__)


class SentenceTransformerEmbedder:
    """Embed with sentence-transformers; torch is imported and the model loaded by whatever needs it first.

    A name or a path loads as the library loads it. `on_load` is called with the model's name before loading, which
    takes seconds. `threads` bounds torch's threads in the whole process. Calls from several threads take turns.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        on_load: Callable[[str], None] | None = None,
        threads: int | None = None,
    ) -> None:
        self._settings = settings
        self._on_load = on_load
        self._threads = threads
        self._lock = threading.RLock()
        self._loaded: SentenceTransformer | None = None
        self._tokens: Callable[[str], int] | None = None
        self._shape: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """Name of the model with its provider."""
        return (
            self._settings.model
            if "/" in self._settings.model
            else f"sentence-transformers/{self._settings.model}"
        )

    @property
    def dimensions(self) -> int:
        """Length of a vector; asks the model."""
        return self._measured()[0]

    @property
    def max_tokens(self) -> int:
        """Most tokens of a passage that the model sees, its prompt deducted."""
        return self._measured()[1]

    def count(self, text: str) -> int:
        """Return the text's tokens, special tokens included, however long it is."""
        if self._tokens is None:
            with self._lock:
                self._tokens = self._counter()
        return self._tokens(text)

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        """Return a unit vector for each text, in their order: float32, shape (len(texts), dimensions)."""
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        with self._lock:
            model = self._model()
            encode = model.encode_query if kind == "query" else model.encode_document
            vectors = encode(
                list(texts),
                batch_size=self._settings.batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def _model(self) -> SentenceTransformer:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> SentenceTransformer:
        _log.info("loading the embedding model %r", self._settings.model)
        if self._on_load:
            self._on_load(self._settings.model)
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        transformers_logging: Any = logging

        if self._threads:
            torch.set_num_threads(self._threads)
        shown = transformers_logging.is_progress_bar_enabled()
        transformers_logging.disable_progress_bar()
        try:
            kept = _at_hand(self._settings.model, self.name)
            return SentenceTransformer(self._settings.model, local_files_only=kept)
        except Exception as error:
            # Each library that loads a model has errors of its own; whoever set the name gets one.
            raise ModelError(
                f"embedding model {self._settings.model!r} cannot be loaded ({' '.join(str(error).split())[:300]}); "
                f"check its name or path and the network, or use {BUNDLED_MODEL!r}, which needs no download"
            ) from error
        finally:
            if shown:
                transformers_logging.enable_progress_bar()

    def _counter(self) -> Callable[[str], int]:
        # transformers hands out one tokenizer object and sets its truncation in every call.
        loaded: Any = self._model().tokenizer

        def count(text: str) -> int:
            with self._lock:
                return len(loaded(text, truncation=False, verbose=False)["input_ids"])

        return count

    def _measured(self) -> tuple[int, int]:
        """Return dimensions and most tokens."""
        if self._shape is None:
            model = self._model()
            dimensions = model.encode_document(["a"], show_progress_bar=False).shape[1]
            prompts = [model.prompts.get(name) or "" for name in ("document", "passage", "corpus")]
            prompt = max(map(self.count, prompts)) - self.count("")
            self._shape = (dimensions, (model.max_seq_length or 512) - prompt)
        return self._shape


def _at_hand(model: str, name: str) -> bool:
    """Tell whether a model is on this machine; raises at once where it is not and cannot be had either.

    The library itself would ask for each of its files, five times each, for minutes.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache

    if Path(model).exists():
        return True
    repositories = list(dict.fromkeys((name, model)))
    if any(
        isinstance(try_to_load_from_cache(repository, "modules.json"), str) for repository in repositories
    ):
        return True
    for repository in repositories:
        try:
            HfApi().model_info(repository, timeout=_REACH_SECONDS)
        except Exception:
            # Whatever stands in the way of the last one is the reason.
            if repository == repositories[-1]:
                raise
        else:
            break
    return False
