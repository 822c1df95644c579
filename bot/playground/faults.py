"""What a test or a person makes go wrong: failing, slow and held API calls, lost acks, twins in either order."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Fault:
    """How one call fails: an answer with `error`, or no answer when `cut`; with `applied` the call takes effect first."""

    error: str
    status: int
    retry_after: int | None
    applied: bool
    cut: bool


@dataclass(slots=True)
class Faults:
    """The faults that still wait for their call, envelope or ack."""

    twins: Literal["message_first", "mention_first"] = "message_first"
    lost_acks: int = 0
    calls: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    delays: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    gates: dict[str, asyncio.Event] = field(default_factory=dict)

    async def before(self, method: str) -> Fault | None:
        """Wait as long as this call shall take; return its fault, if one waits."""
        if self.delays[method]:
            await asyncio.sleep(self.delays[method].popleft())
        if method in self.gates:
            await self.gates[method].wait()
        return self.calls[method].popleft() if self.calls[method] else None
