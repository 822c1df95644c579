"""Work in a process of its own, whose memory is that work's alone."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from bot.bench.measure import Tell
from ingest.errors import TwohopError

T = TypeVar("T")


def in_child(work: Callable[..., T], *args: Any, tell: Tell) -> T:
    """Return `work(*args, tell)` of a new process; what it tells is told here.

    `work` is a function of a module, and everything goes there and back as a pickle. Raises the child's own errors where
    they are ours, and otherwise TwohopError with its traceback.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_run, args=(theirs, work, args))
    child.start()
    theirs.close()
    try:
        while True:
            said, value = ours.recv()
            if said == "told":
                tell(*value)
            elif said == "failed":
                raise value
            else:
                result: T = value
                return result
    except EOFError as error:
        child.join()
        raise TwohopError(
            f"the process of the benchmark ended with code {child.exitcode!r}; look whether there is enough memory"
        ) from error
    finally:
        ours.close()
        if child.is_alive():
            child.join(10)
            child.kill()
        child.join()


def _run(back: Connection, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    def tell(stage: str, done: int, total: int) -> None:
        back.send(("told", (stage, done, total)))

    try:
        back.send(("done", work(*args, tell)))
    except TwohopError as error:
        back.send(("failed", error))
    except Exception:
        # A bug: whoever started the process sees where it is.
        back.send(("failed", TwohopError(f"the process of the benchmark failed: {traceback.format_exc()}")))
