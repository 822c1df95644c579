"""A small strict Elasticsearch on 127.0.0.1, for what a healthy node cannot play: refusals, faults and other products."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import unquote, urlsplit

CERTIFICATE = Path(__file__).with_name("self_signed.pem")
"""Key and certificate of localhost and 127.0.0.1 that no authority signed; it protects nothing."""

PRODUCT = {"X-Elastic-Product": "Elasticsearch"}


def error(status: int, type_: str, reason: str, **more: Any) -> Reply:
    """Return a refusal as the server writes it."""
    cause = {"type": type_, "reason": reason, **more}
    return Reply(status, {"error": {"root_cause": [cause], **cause}, "status": status})


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, and what happens to it on its way."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=lambda: PRODUCT)
    how: Literal["whole", "silent", "trickling", "truncated"] = "whole"


class ElasticServer:
    """Answers what ElasticIndex asks; `replies` holds by path what it says instead, one each, the last for ever.

    Anything else than what a server of version 8 accepts is a 400. `arms` holds what is said for an arm of a search.
    `rows` are the rows of the one index, by id.
    """

    def __init__(self, prefix: str, identity: str, dimensions: int, *, tls: bool = False) -> None:
        self.prefix = prefix
        self.meta = {
            "identity": identity,
            "dimensions": dimensions,
            "created_at": "2026-11-30T12:00:00+00:00",
        }
        self.replies: dict[str, deque[Reply]] = {}
        self.arms: dict[str, Mapping[str, Any]] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str, str]] = []
        """Method, path and body of each."""
        self.bulks: list[int] = []
        """Operations of each bulk request that was carried out."""
        self.answer: Callable[[str, str, str, Message], Reply] = self._answer
        """Answers one request: its method, path, body and headers; a test may put something in between."""
        self._changes = 0
        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def say(self, path: str, *replies: Reply) -> None:
        """Answer requests for a path with these, the last one again and again."""
        self.replies[path] = deque(replies)

    def asked(self, path: str) -> int:
        """Return how often a path was asked."""
        return sum(path == asked for _, asked, _ in self.requests)

    def _answer(self, method: str, path: str, body: str, headers: Message) -> Reply:
        self.requests.append((method, path, body))
        if waiting := self.replies.get(path):
            reply = waiting.popleft() if len(waiting) > 1 else waiting[0]
            if reply.status or reply.how != "whole":
                return reply
        types = [headers.get("Accept", ""), *([headers.get("Content-Type", "")] if body else [])]
        if not all("compatible-with=8" in type_ for type_ in types):
            return error(400, "media_type_header_exception", f"Invalid media-type value {types}")
        index, alias = f"{self.prefix}-generation-1", f"{self.prefix}-write-1"
        match method, path.strip("/").split("/"):
            case "GET", [""]:
                return Reply(200, {"version": {"number": "8.19.9"}})
            case "GET", ["_alias", _]:
                return Reply(200, {index: {"aliases": {self.prefix: {}}}})
            case "GET", [name] if name in (self.prefix, f"{self.prefix}-generation-*", index):
                return Reply(200, {index: {"mappings": {"_meta": self.meta}, "aliases": {self.prefix: {}}}})
            case "POST", ["_msearch"]:
                return Reply(200, {"responses": [self._found(line) for line in body.splitlines()[1::2]]})
            case (("GET" | "POST"), [name, "_refresh"]) if name == index:
                return Reply(200, {"_shards": {"total": 1, "successful": 1, "failed": 0}})
            case "POST", [name, "_search"] if name == index:
                return Reply(200, self._documents())
            case "GET", [name, "_doc", id_] if name == index:
                return self._row(id_)
            case "PUT", [name, "_bulk"] if name == alias:
                return Reply(200, {"errors": False, "items": self._carried_out(body)})
            case _:
                return error(400, "illegal_argument_exception", f"the fake knows no {method} {path}")

    def _found(self, line: str) -> Mapping[str, Any]:
        asked = json.loads(line)
        arm = "dense" if "knn" in asked else "codes" if '"codes"' in line else "lexical"
        if arm in self.arms:
            return {"status": 200, **self.arms[arm]}
        chunks = [row for row in self.rows.values() if "payload" in row and "version" in row]
        hits = [
            {
                "_index": f"{self.prefix}-generation-1",
                "_score": 1.0,
                "sort": [1.0, row["id"]],
                "_source": {name: row[name] for name in asked["_source"]},
            }
            for row in chunks
        ]
        return {
            "status": 200,
            "timed_out": False,
            "_shards": {"total": 1, "failed": 0},
            "hits": {"hits": hits},
        }

    def _documents(self) -> Mapping[str, Any]:
        rows = sorted((row for row in self.rows.values() if "source" in row), key=lambda row: row["uri"])
        hits = [{"_source": row, "sort": [row["uri"]]} for row in rows]
        return {"timed_out": False, "_shards": {"total": 1, "failed": 0}, "hits": {"hits": hits}}

    def _row(self, id_: str) -> Reply:
        if id_ not in self.rows:
            return Reply(404, {"_id": id_, "found": False})
        row = dict(self.rows[id_])
        return Reply(
            200,
            {"_id": id_, "found": True, "_seq_no": row.pop("_seq_no"), "_primary_term": 1, "_source": row},
        )

    def _carried_out(self, body: str) -> list[Mapping[str, Any]]:
        lines = iter(body.splitlines())
        results: list[Mapping[str, Any]] = []
        for line in lines:
            ((action, about),) = json.loads(line).items()
            id_, held = about["_id"], self.rows.get(about["_id"])
            source = json.loads(next(lines)) if action != "delete" else {}
            self._changes += 1
            result = {"_id": id_, "_seq_no": self._changes, "_primary_term": 1, "status": 200}
            if (action == "create" and held) or (
                "if_seq_no" in about and (not held or held["_seq_no"] != about["if_seq_no"])
            ):
                reason = {"type": "version_conflict_engine_exception", "reason": "changed"}
                result = {"_id": id_, "status": 409, "error": reason}
            elif action == "delete":
                self.rows.pop(id_, None)
            else:
                self.rows[id_] = {**source, "_seq_no": self._changes}
            results.append({action: result})
        self.bulks.append(len(results))
        return results

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                pass

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                path = unquote(urlsplit(self.path).path)
                reply = server.answer(self.command, path, body, self.headers)
                if reply.how == "silent":
                    server._over.wait()
                    return
                sent = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                length = len(sent) + (10_000 if reply.how != "whole" else 0)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(sent)
                if reply.how == "trickling":
                    while not server._over.wait(0.02):
                        try:
                            self.wfile.write(b" ")
                        except OSError:
                            break
                if reply.how != "whole":
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_DELETE = _answer

        return Handler


def fingerprint() -> str:
    """Return the SHA-256 of CERTIFICATE, as Elasticsearch prints it."""
    text = CERTIFICATE.read_text(encoding="ascii")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERT") :])).hexdigest()
