"""What is counted for Prometheus: turns as the desk returns them, calls of the model and of Slack, and the health's numbers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bot.app import Asked
from bot.chat import fault
from bot.tools import TOOLS
from bot.types import Budget, ChatModel, Message, Reply, Tool
from ingest.errors import ModelError

SlackError = Literal["ratelimited", "auth", "refused", "server", "unreachable"]

_STAGES = frozenset(tool.name for tool in TOOLS)
_STOPS = frozenset(
    {
        "answered",
        "no search needed",
        "repeated searches",
        "no new evidence",
        "the model had nothing to add",
        "the model could not be used",
        "time limit of seconds",
        "limit of turns",
        "limit of searches",
        "limit of tokens",
        "baseline naive",
        "baseline hybrid",
    }
)
_OTHER = "other"
"""For what is in none of the closed sets: a label never holds somebody's words."""
_FAULTS: Mapping[str, str] = {
    fault.QUOTA: "quota",
    fault.BUSY: "busy",
    fault.UNREACHABLE: "unreachable",
    fault.LATE: "late",
    fault.WRONG: "settings",
    fault.GARBLED: "garbled",
}
_OURS = frozenset({"ok", "stopped", "limit"})
"""Ends of a call that say nothing bad of the model."""
AUTH = frozenset(
    {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "missing_scope"}
)
"""Errors of Slack that say something of the token."""
GAUGES: Mapping[str, str] = {
    "slack_silence_seconds": "Since Slack's connection last gave a sign of life.",
    "queue_depth": "Messages of the inbox by state.",
    "queue_age_seconds": "How long the oldest message that has no answer yet has been here.",
    "index_age_seconds": "Since the last complete run into the index that answers.",
    "index_late": "Plans whose sources were not read to their end in twice their interval.",
    "index_runs": "Index runs of the last 90 days by state.",
}
"""The numbers that a part may bring, and what they say."""

Value = float | Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Part:
    """How one part of the bot is: in words for a person, and in numbers by name, some of them by state."""

    ok: bool
    said: str
    numbers: Mapping[str, Value] = field(default_factory=dict)


class Metrics:
    """Everything that is counted in this process; any thread may count."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.model_ended: tuple[str, float] | None = None
        """How the last call of the model ended, and when (monotonic seconds)."""
        ProcessCollector(registry=registry)
        self._parts = _Parts()
        registry.register(self._parts)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"twohop_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(f"twohop_{name}", text, labels, buckets=buckets, registry=registry)

        self._turns = counter("turns", "Questions answered.", "route", "shape", "mode")
        self._stops = counter("stops", "Why answering ended.", "reason")
        self._verdicts = counter("verdicts", "What code decided.", "decision")
        self._searches = counter("searches", "Searches and look-ups.")
        self._tokens = counter("tokens", "Tokens of the language model.", "direction")
        self._rejected = counter("rejected_texts", "Reasons for which text of the model was not shown.")
        self._refusals = counter("refusals", "Messages that were refused with a reason.", "reason")
        self._failures = counter("failed_turns", "Questions answered with an apology; the log says why.")
        self._slack = counter("slack_errors", "Calls of Slack that did not work.", "method", "error")
        seconds = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 90)
        self._answer = histogram("answer_seconds", "From a question to its answer.", seconds, "route")
        self._model = histogram(
            "model_seconds", "Calls of the language model by outcome.", seconds, "outcome"
        )
        short = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
        self._stage = histogram("stage_seconds", "Searches and look-ups.", short, "stage", "route")
        self._gaps = histogram(
            "answer_gaps",
            "Sufficiency: what an answer could not settle; none is whole.",
            (0, 1, 2, 3, 5),
            "route",
        )

    def turn(self, asked: Asked) -> None:
        """Count one answer."""
        answer, turn = asked.answer, asked.turn
        route = answer.route.path
        self._turns.labels(route, answer.shape, turn.mode).inc()
        self._stops.labels(_within(re.sub(r" [\d.]+", "", answer.stop), _STOPS)).inc()
        if answer.verdict:
            self._verdicts.labels(answer.verdict.decision).inc()
        self._searches.inc(answer.usage.searches)
        self._tokens.labels("input").inc(answer.usage.input_tokens)
        self._tokens.labels("output").inc(answer.usage.output_tokens)
        self._rejected.inc(len(answer.rejected))
        self._answer.labels(route).observe(turn.ms / 1000)
        self._gaps.labels(route).observe(len(answer.gaps))
        for step in answer.steps:
            self._stage.labels(_within(step.tool, _STAGES), route).observe(step.ms / 1000)

    def refused(self, reason: str) -> None:
        """Count a message that got a reason instead of an answer."""
        self._refusals.labels(reason).inc()

    def failed(self) -> None:
        """Count a question that was answered with an apology."""
        self._failures.inc()

    def slack(self, method: str, error: SlackError) -> None:
        """Count a call of Slack that did not work."""
        self._slack.labels(method, error).inc()

    def heard(self, model: ChatModel) -> ChatModel:
        """Return the model with its calls counted."""
        return _Heard(model, self)

    def model(self, outcome: str, seconds: float) -> None:
        """Count one call of the language model."""
        self._model.labels(outcome).observe(seconds)
        if outcome == "ok" or outcome not in _OURS:
            self.model_ended = (outcome, time.monotonic())

    def text(self, parts: Mapping[str, Part]) -> bytes:
        """Return everything as Prometheus reads it, with how the parts are now."""
        self._parts.now = parts
        return generate_latest(self.registry)


class _Parts(Collector):
    """The health's numbers as gauges; one that could not be found out is left out."""

    def __init__(self) -> None:
        self.now: Mapping[str, Part] = {}

    def collect(self) -> Iterator[Metric]:
        healthy = GaugeMetricFamily("twohop_healthy", "Whether a part is well.", labels=["part"])
        for name, part in self.now.items():
            healthy.add_metric([name], part.ok)
        yield healthy
        for part in self.now.values():
            for name, value in part.numbers.items():
                yield _gauge(name, value)

    def describe(self) -> Iterable[Metric]:
        return ()


def _gauge(name: str, value: Value) -> Metric:
    if not isinstance(value, Mapping):
        return GaugeMetricFamily(f"twohop_{name}", GAUGES[name], value=value)
    gauge = GaugeMetricFamily(f"twohop_{name}", GAUGES[name], labels=["state"])
    for state, number in value.items():
        gauge.add_metric([state], number)
    return gauge


def slack_error(status: int, body: Mapping[str, Any]) -> SlackError | None:
    """Return what kind of error a response of Slack is, or None where it is none."""
    code = str(body.get("error") or "")
    if status == 429 or code == "ratelimited":
        return "ratelimited"
    if status >= 500:
        return "server"
    if code in AUTH:
        return "auth"
    return "refused" if code or not body.get("ok") else None


def _within(value: str, known: frozenset[str]) -> str:
    return value if value in known else _OTHER


class _Heard:
    """A ChatModel whose calls are counted by how they end."""

    def __init__(self, model: ChatModel, metrics: Metrics) -> None:
        self._model = model
        self._metrics = metrics

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def note(self) -> str:
        return self._model.note

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        budget: Budget,
    ) -> Reply:
        began = time.monotonic()
        # What cancels a call is the end of the question's time, or a person.
        outcome = "stopped"
        try:
            reply = await self._model.complete(
                messages, tools=tools, schema=schema, max_tokens=max_tokens, budget=budget
            )
            outcome = "ok"
        except ModelError as error:
            outcome = _FAULTS.get(error.plainly, "limit" if "limit of" in error.plainly else _OTHER)
            raise
        finally:
            if outcome == "stopped" and time.monotonic() >= budget.model_deadline:
                outcome = "late"
            self._metrics.model(outcome, time.monotonic() - began)
        return reply
