"""The way to an Elasticsearch: one client on an event loop of its own, every call bounded, all retries in one place."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
from elastic_transport import ConnectionError as Unreachable
from elastic_transport import ConnectionTimeout, SerializationError, TlsError
from elasticsearch import ApiError, AsyncElasticsearch, TransportError, UnsupportedProductError

from ingest.config import ElasticsearchSettings
from ingest.errors import ConfigError, IndexAway, IndexingError

OLDEST = (8, 14)
"""Oldest server version that has all that is used here under its free licence."""

_PATIENT_SECONDS = 60.0
"""How long an index run tries again while the server is busy or away."""
_REQUEST_SECONDS = 30.0
_CHECK_SECONDS = 10.0
"""How long the first request may take: a start that cannot reach its index says so soon."""
_PAUSES = (0.1, 0.4)
_PATIENT_PAUSES = (0.25, 0.5, 1.0, 2.0, 4.0)
_LONGEST_PAUSE = 8.0
_BATCH_BYTES = 5_000_000
_BATCH_OPERATIONS = 500
_PASSING = frozenset({429, 502, 503, 504})
"""Statuses of a server that may be well a moment later."""

_NOT_THERE = frozenset({400, 404, 405})
"""Statuses of a server that knows nothing at an address."""

_TOO_LARGE: Mapping[str, Any] = {
    "status": 413,
    "error": {"type": "too_large", "reason": "it is larger than the server takes in one request"},
}

_SOMEBODY = "somebody wanted it so: ask whom"
_BLOCKS: Mapping[str, tuple[str, str]] = {
    "5": (_SOMEBODY, "index.blocks.read_only"),
    "6": (_SOMEBODY, "cluster.blocks.read_only"),
    "8": (_SOMEBODY, "index.blocks.write"),
    "12": (
        "a disk that is almost full does this: free some space",
        "index.blocks.read_only_allow_delete",
    ),
    "13": (_SOMEBODY, "cluster.blocks.read_only_allow_delete"),
}
"""Why Elasticsearch refuses to write, by the number that its message names, and what has to be removed."""

T = TypeVar("T")
Ask = Callable[[AsyncElasticsearch], Awaitable[T]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of a bulk request; without a body it is deleted."""

    id: str
    body: str = ""
    """JSON."""
    only: Mapping[str, Any] = field(default_factory=dict)
    """What must be so: `op_type` create, or `if_seq_no` with `if_primary_term`; otherwise its result is a 409."""

    def lines(self) -> Iterator[str]:
        """Return the lines as the bulk request wants them."""
        only = dict(self.only)
        action = only.pop("op_type", "index") if self.body else "delete"
        yield json.dumps({action: {"_id": self.id, **only}})
        if self.body:
            yield self.body


Results = dict[str, Mapping[str, Any]]
"""What became of each operation of a bulk request, by id; `error` is there where it was refused."""


class Wire:
    """Calls one Elasticsearch from any thread.

    The client is asynchronous because only its time limit is for a whole request: the other one's starts anew with
    every byte that arrives. Each call raises IndexingError with the address and the next step.
    """

    def __init__(self, settings: ElasticsearchSettings) -> None:
        _check_settings(settings)
        self.url = settings.url
        key, password = settings.api_key.get_secret_value(), settings.password.get_secret_value()
        more: dict[str, Any] = {}
        if key:
            more["api_key"] = key
        if settings.username:
            more["basic_auth"] = (settings.username, password)
        if settings.ca_certs:
            more["ca_certs"] = str(settings.ca_certs)
        if settings.fingerprint:
            more["ssl_assert_fingerprint"] = settings.fingerprint
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="elasticsearch", daemon=True)
        try:
            self._client = AsyncElasticsearch(settings.url, max_retries=0, retry_on_timeout=False, **more)
        except (ValueError, OSError) as error:
            self._loop.close()
            raise ConfigError(
                f"Elasticsearch {self.url!r} cannot be set up: {error}; mend the elasticsearch settings"
            ) from error
        self._thread.start()

    def check(self) -> str:
        """Return the server's version; raises IndexingError where it is not an Elasticsearch that will do."""
        try:
            found = self.ask(lambda client: client.info(), deadline=time.monotonic() + _CHECK_SECONDS)
        except IndexingError as error:
            if isinstance(error.__cause__, ApiError) and error.__cause__.status_code in _NOT_THERE:
                self._refuse_path(f"status {error.__cause__.status_code}")
            raise
        if "version" not in found:
            self._refuse_path("it answers with something else")
        version = str(found["version"]["number"])
        numbers = tuple(int(part) for part in version.split(".")[:2])
        if numbers < OLDEST:
            raise IndexingError(
                f"Elasticsearch {self.url!r} is version {version!r}; Twohop needs "
                f"{'.'.join(map(str, OLDEST))} or newer: upgrade the server, or set TWOHOP_INDEX=sqlite"
            )
        return version

    def _refuse_path(self, why: str) -> None:
        """Raise IndexingError where the address has a path: a proxy may pass one on, an Elasticsearch itself has none."""
        if path := urlsplit(self.url).path.strip("/"):
            raise IndexingError(
                f"Elasticsearch {self.url!r} does not answer below the path {f'/{path}'!r} ({why}); take the path out "
                "of ELASTICSEARCH_URL, or write the one that your proxy passes on"
            )

    def ask(self, ask: Ask[T], *, deadline: float | None = None, missing: T | None = None) -> T:
        """Return the answer to a request that may be repeated.

        `deadline` (monotonic seconds) is somebody waiting, for whom a server that is away is tried again only a little
        while; without one it gets a minute, as a restart needs. `missing`, where given, is the answer to a 404.
        """
        until = time.monotonic() + _PATIENT_SECONDS if deadline is None else deadline
        try:
            return self.run(self._persist(ask, until, _patience() if deadline is None else _PAUSES))
        except ApiError as error:
            if missing is not None and error.status_code == 404:
                return missing
            raise self.explained(error) from error
        except TransportError as error:
            raise self.explained(error) from error

    def bulk(self, index: str, operations: Sequence[Operation]) -> Results:
        """Carry out operations in order, each as often as it takes, and return what became of them.

        `index` must be an alias, so that no index that was removed meanwhile comes back.
        """
        try:
            return self.run(self._bulk(index, operations))
        except (ApiError, TransportError) as error:
            raise self.explained(error) from error

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the client's loop and wait for it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Callable[[AsyncElasticsearch], Coroutine[Any, Any, None]]) -> Callable[[], object]:
        """Start `work` beside everything else and return what cancels it."""
        return asyncio.run_coroutine_threadsafe(work(self._client), self._loop).cancel

    def close(self) -> None:
        """Close the connections and end the loop."""
        if self._loop.is_closed():
            return
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close()

    async def _persist(self, ask: Ask[T], until: float, pauses: Iterable[float]) -> T:
        """Ask until it is answered, refused for good or too late."""
        for pause in chain(pauses, (None,)):
            left = until - time.monotonic()
            try:
                return await ask(self._client.options(request_timeout=max(0.01, min(left, _REQUEST_SECONDS))))
            except (ApiError, TransportError) as error:
                if pause is None or not _passes(error) or time.monotonic() + pause >= until:
                    raise
                _log.info("Elasticsearch %s: %s; again in %s s", self.url, _said(error), pause)
                await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    async def _bulk(self, index: str, operations: Sequence[Operation]) -> Results:
        waiting = deque(_batches(operations))
        results: Results = {}
        pauses = _patience()
        until = time.monotonic() + _PATIENT_SECONDS
        while waiting:
            batch = waiting.popleft()
            # The client takes JSON that is ready, too, although its types do not say so.
            lines: list[Any] = [line for operation in batch for line in operation.lines()]
            problem: Exception | None = None
            halves = False
            try:
                answer = await self._client.options(request_timeout=_REQUEST_SECONDS).bulk(
                    index=index, operations=lines, require_alias=True
                )
            except (ApiError, TransportError) as error:
                if isinstance(error, ApiError) and error.status_code == 413 and len(batch) == 1:
                    results[batch[0].id] = _TOO_LARGE
                    continue
                if not _passes(error) and not _too_much(error):
                    raise
                problem, again = error, batch
                halves = _too_much(error) and len(batch) > 1
            else:
                done = _sorted_out(batch, answer["items"])
                results |= done
                again = [operation for operation in batch if operation.id not in done]
                if not again:
                    pauses = _patience()
                    until = time.monotonic() + _PATIENT_SECONDS
                    continue
            middle = len(again) // 2
            waiting.extendleft([again[middle:], again[:middle]] if halves else [again])
            said = _said(problem) if problem else f"{len(again)} of {len(batch)} rows were refused for now"
            pause = 0.0 if halves and not _busy(problem) else next(pauses)
            _log.info("Elasticsearch %s: %s; again in %s s", self.url, said, pause)
            if time.monotonic() + pause >= until:
                if problem:
                    raise problem
                raise IndexingError(
                    f"Elasticsearch {self.url!r} was too busy for {_PATIENT_SECONDS:.0f} s; "
                    "run `twohop index` again when it is less so"
                )
            await asyncio.sleep(pause)
        return results

    def explained(self, error: Exception) -> IndexingError:
        """Return the error for a person: what the server said and the next step."""
        where = f"Elasticsearch {self.url!r}"
        match error:
            case UnsupportedProductError():
                return IndexingError(
                    f"{where} does not say that it is Elasticsearch: OpenSearch, servers older than "
                    f"{OLDEST[0]}.{OLDEST[1]} and proxies that remove the header X-Elastic-Product cannot be used; "
                    "point ELASTICSEARCH_URL at an Elasticsearch, or set TWOHOP_INDEX=sqlite"
                )
            case TlsError() if "WRONG_VERSION_NUMBER" in str(error.message):
                return IndexingError(f"{where} speaks no TLS; write http:// in ELASTICSEARCH_URL")
            case TlsError() | Unreachable() if _about_certificates(error):
                return IndexingError(
                    f"{where} showed a certificate that is not trusted ({_certificate(error)}); set "
                    "ELASTICSEARCH_CA_CERTS to the CA's file, or ELASTICSEARCH_FINGERPRINT to its SHA-256 fingerprint"
                )
            case ConnectionTimeout():
                return IndexAway(
                    f"{where} did not answer in time; look whether it is overloaded, then try again"
                )
            case Unreachable():
                return IndexAway(
                    f"{where} cannot be reached ({_unreachable(error)}); check ELASTICSEARCH_URL and that it runs"
                )
            case SerializationError():
                return IndexingError(
                    f"{where} answered with something else than JSON; check that ELASTICSEARCH_URL is not a proxy's page"
                )
            case ApiError() if _passes(error):
                return IndexAway(f"{where}: {_refusal(error)}")
            case ApiError():
                return IndexingError(f"{where}: {_refusal(error)}")
            case _:
                return IndexingError(f"{where}: {error}")


def _check_settings(settings: ElasticsearchSettings) -> None:
    if not settings.url:
        raise ConfigError(
            "TWOHOP_INDEX=elastic needs an address; set ELASTICSEARCH_URL, for example https://search.example.com:9200"
        )
    if settings.ca_certs and not settings.ca_certs.is_file():
        raise ConfigError(
            f"ELASTICSEARCH_CA_CERTS names {str(settings.ca_certs)!r}, which is no file; set it to the CA's PEM file"
        )


def _patience() -> Iterator[float]:
    return chain(_PATIENT_PAUSES, repeat(_LONGEST_PAUSE))


def _batches(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    batch: list[Operation] = []
    size = 0
    for operation in operations:
        # Raises UnicodeEncodeError for what is no text, before anything is sent.
        length = len(operation.body.encode())
        if batch and (size + length > _BATCH_BYTES or len(batch) == _BATCH_OPERATIONS):
            yield batch
            batch, size = [], 0
        batch.append(operation)
        size += length
    if batch:
        yield batch


def _sorted_out(batch: Sequence[Operation], items: Sequence[Mapping[str, Any]]) -> Results:
    """Return the results that are final; raises IndexingError where the whole index cannot be written."""
    final: Results = {}
    for operation, item in zip(batch, items, strict=True):
        (result,) = item.values()
        error = result.get("error") or {}
        if error.get("type") == "index_not_found_exception":
            raise IndexingError(
                f"the index that was being written is gone ({reason(error)}); run `twohop index` again"
            )
        if error.get("type") == "cluster_block_exception":
            raise IndexingError(_blocked(reason(error)))
        if not error or result["status"] not in _PASSING:
            final[operation.id] = result
    return final


def _type(error: ApiError) -> str:
    body = error.body
    found = body.get("error") if isinstance(body, Mapping) else None
    return str(found.get("type", "")) if isinstance(found, Mapping) else ""


def _passes(error: Exception) -> bool:
    """Tell whether the same request may go well a moment later."""
    if isinstance(error, ApiError):
        return error.status_code in _PASSING and _type(error) != "cluster_block_exception"
    return isinstance(error, ConnectionTimeout | Unreachable) and not _about_certificates(error)


def _too_much(error: Exception) -> bool:
    """Tell whether a smaller request may go well."""
    return isinstance(error, ApiError) and (
        error.status_code == 413 or _type(error) == "circuit_breaking_exception" or _busy(error)
    )


def _busy(error: Exception | None) -> bool:
    return isinstance(error, ApiError) and _type(error) == "es_rejected_execution_exception"


def _about_certificates(error: TransportError) -> bool:
    # The transport keeps what really happened only as the context.
    return isinstance(error, TlsError) or isinstance(error.__context__, aiohttp.ServerFingerprintMismatch)


def _certificate(error: TransportError) -> str:
    cause = error.__context__
    if isinstance(cause, aiohttp.ServerFingerprintMismatch):
        return f"its fingerprint is {cause.got.hex()}"
    return str(error.message)


def _unreachable(error: TransportError) -> str:
    """Return the system's own word for it, such as Connection refused, where there is one."""
    cause = getattr(error.__context__, "os_error", None)
    if not isinstance(cause, OSError) or not cause.errno:
        return str(error.message)
    # A name that does not resolve has numbers of its own.
    return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)


def _said(error: Exception) -> str:
    return _type(error) or str(error) if isinstance(error, ApiError) else f"{type(error).__name__}: {error}"


def reason(error: Mapping[str, Any]) -> str:
    """Return what an error object of the server says, innermost cause first."""
    cause: Any = error
    for name in ("root_cause", "caused_by"):
        inner = cause.get(name)
        cause = (
            inner[0] if isinstance(inner, list) and inner else inner if isinstance(inner, Mapping) else cause
        )
    return f"{cause.get('type', 'error')}: {cause.get('reason', '')}"


def _blocked(reason: str) -> str:
    number = re.search(r"FORBIDDEN/(\d+)/", reason)
    why, block = _BLOCKS.get(number[1] if number else "", _BLOCKS["12"])
    return f"writing is blocked ({reason}); {why}, remove the block {block}, then run `twohop index` again"


def _refusal(error: ApiError) -> str:
    found = error.body.get("error") if isinstance(error.body, Mapping) else None
    why = reason(found) if isinstance(found, Mapping) else str(error.message)
    match error.status_code:
        case _ if _type(error) == "cluster_block_exception":
            return _blocked(why)
        case 401:
            return (
                f"the key or password was refused ({why}); check ELASTICSEARCH_API_KEY, or "
                "ELASTICSEARCH_USERNAME and ELASTICSEARCH_PASSWORD"
            )
        case 403 if isinstance(found, Mapping) and "license.expired.feature" in found:
            return f"the server's licence does not allow this ({why}); renew it, or use its free one"
        case 403:
            return f"this key may not do that ({why}); give it what the README's part on Elasticsearch names"
        case 404:
            return f"{why}; run `twohop index --rebuild`"
        case 429 | 502 | 503 | 504:
            return f"it is too busy or not ready ({error.status_code}, {why}); try again in a minute"
        case _:
            return f"it refused the request ({error.status_code}, {why})"
