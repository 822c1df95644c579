"""Fit the intents' classifier to its examples, and write the fit that ships with the package.

python -m tests.benchmarks.fit_intents
"""

from pathlib import Path

import numpy as np

import bot
from bot.reading.intents import Intents
from ingest.config import EmbeddingSettings
from ingest.embed import embedder_for


def main() -> None:
    """Write `bot/data/intents.npz`: weights of half precision and the fingerprint of what they are fitted to."""
    intents = Intents(embedder_for(EmbeddingSettings()))
    target = Path(bot.__file__).parent / "data" / "intents.npz"
    np.savez_compressed(target, weights=intents.fit().astype(np.float16), fingerprint=intents.fingerprint)
    print(f"{target.name}: {target.stat().st_size} bytes")  # noqa: T201 - a script's result


if __name__ == "__main__":
    main()
