"""The embedder that runs the bundled model with ONNX Runtime on this machine."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.config import EmbeddingSettings
from ingest.embed import TextKind, Vectors, bundled

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

_BATCH_TOKENS = 768
"""Measured on one core: a token costs a fifth more in batches of 3,000 tokens, and half more in batches of 6,000."""

_log = logging.getLogger(__name__)


class OnnxEmbedder:
    """Embed with the bundled model, which never reaches the network.

    The first `embed` checks the weights and builds the network over them; counting tokens needs only the tokenizer.
    `on_load` is called with the model's name before loading. `threads` bounds the threads of a call, without it
    OMP_NUM_THREADS does.
    """

    name = bundled.NAME
    dimensions = bundled.DIMENSIONS
    max_tokens = bundled.MAX_TOKENS

    def __init__(
        self,
        settings: EmbeddingSettings,
        on_load: Callable[[str], None] | None = None,
        threads: int | None = None,
    ) -> None:
        self._settings = settings
        self._on_load = on_load
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: InferenceSession | None = None
        self._arrays: Any = None
        self._folder = bundled.folder()

    def count(self, text: str) -> int:
        """Return the text's tokens, special tokens included, however long it is."""
        return len(self._tokenizer.encode(text).ids)

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:  # noqa: ARG002
        """Return a unit vector for each text, in their order: float32, shape (len(texts), 384); kinds are embedded alike."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        tokens = [self._seen(text) for text in texts]
        for batch in _batches([len(seen) for seen in tokens], self._settings.batch_size):
            ids = np.zeros((len(batch), len(tokens[batch[-1]])), np.int64)
            mask = np.zeros_like(ids)
            for row, n in enumerate(batch):
                ids[row, : len(tokens[n])] = tokens[n]
                mask[row, : len(tokens[n])] = 1
            vectors[batch] = self._session().run(None, {"input_ids": ids, "attention_mask": mask})[0]
        return vectors

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return bundled.tokenizer(self._folder)

    def _seen(self, text: str) -> list[int]:
        """Return the ids of the tokens that the model sees: of a text that is too long, its beginning and the end mark."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids if len(ids) <= self.max_tokens else [*ids[: self.max_tokens - 1], ids[-1]]

    def _session(self) -> InferenceSession:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> InferenceSession:
        _log.info("loading the embedding model %r", self._settings.model)
        if self._on_load:
            self._on_load(self._settings.model)
        from onnxruntime import GraphOptimizationLevel, InferenceSession, OrtValue, SessionOptions

        from ingest.embed.graph import network

        weights = bundled.weights(self._folder)
        graph, arrays = network(weights, bundled.LAYERS, bundled.HEADS)
        options = SessionOptions()
        # The graph is written in fused operators: there is nothing to find in it, which would take time at each start.
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = self._threads or _threads_of_environment()
        # A thread that waits for the next question leaves the processor to others.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_external_initializers(
            list(arrays), [OrtValue.ortvalue_from_numpy(array) for array in arrays.values()]
        )
        # The session computes over this memory.
        self._arrays = arrays
        return InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _batches(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield the places of texts of about one length together: a batch is as wide as its longest text.

    The shortest come first. A batch has at most so many texts, and no more tokens than the processor's cache holds.
    """
    batch: list[int] = []
    for n in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == most or (len(batch) + 1) * lengths[n] > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(n)
    if batch:
        yield batch


def _threads_of_environment() -> int:
    """Return OMP_NUM_THREADS, which ONNX Runtime does not read itself; 0 leaves it to ONNX Runtime."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() else 0
