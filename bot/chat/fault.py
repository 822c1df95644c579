"""Why an attempt to reach the model failed: details for the trace, plain words for a person, and whether to try again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openai

QUOTA = "the language model's quota is used up"
BUSY = "the language model is too busy"
UNREACHABLE = "the language model cannot be reached"
LATE = "the language model did not answer in time"
WRONG = "the language model is not set up right"
GARBLED = "the language model's server sent no usable answer"


class Fault(Exception):
    """One failed attempt; it ends as a ModelError unless another attempt works."""

    def __init__(
        self,
        detail: str,
        *,
        plainly: str = GARBLED,
        again: bool = True,
        wait: float | None = None,
        status: int = 0,
        no_server: bool = False,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.plainly = plainly
        self.again = again
        self.wait = wait
        """Seconds that the server asks to wait."""
        self.status = status
        self.no_server = no_server
        """No connection could be opened: nobody listens there, or the name is unknown."""


def of_body(body: object, raw: str) -> Fault:
    """Return the fault of a response with status 200 that is no completion."""
    error = body.get("error") if isinstance(body, dict) else None
    if not error:
        return Fault(f"the server sent no choices: {raw.strip()[:80]!r}")
    code = f"{error.get('code')} {error.get('type')}" if isinstance(error, dict) else ""
    said = str(error.get("message") or error) if isinstance(error, dict) else str(error)
    if "insufficient_quota" in code:
        return _quota(said)
    return Fault(f"the server sent an error with status 200: {said[:300]}", status=200)


def of_error(error: openai.OpenAIError) -> Fault:
    """Return the fault of what the openai client raised."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return Fault("the server was silent for too long", plainly=LATE)
    if isinstance(error, openai.APIStatusError):
        return _of_status(error)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        return Fault(
            f"no connection ({type(cause).__name__}: {cause}); check OPENAI_BASE_URL and that the server runs",
            plainly=UNREACHABLE,
            # Which HTTP library it stands on is the client's own business; they all call it so.
            no_server=type(cause).__name__ == "ConnectError",
        )
    return Fault(f"{type(error).__name__}: {str(error)[:300]}", again=False)


def _of_status(error: openai.APIStatusError) -> Fault:
    status = error.status_code
    body = error.body
    said = str(body.get("message") or error.message) if isinstance(body, dict) else error.message
    said = f"status {status}: {' '.join(said.split())[:400]}"
    if error.request_id:
        said += f" (request {error.request_id})"
    if "insufficient_quota" in (error.code, error.type):
        return _quota(said)
    if status == 429:
        return Fault(said, plainly=BUSY, wait=_wait(error), status=status)
    if status in (408, 409) or status >= 500:
        return Fault(said, plainly=UNREACHABLE, wait=_wait(error), status=status)
    step = {
        401: "check OPENAI_API_KEY",
        403: "check the rights of OPENAI_API_KEY",
        404: "check TWOHOP_MODEL and OPENAI_BASE_URL, which usually ends in /v1",
    }.get(status, "run `twohop doctor` to see what the server takes")
    return Fault(f"{said}; {step}", plainly=WRONG, again=False, status=status)


def _quota(said: str) -> Fault:
    """An empty account looks like a rate limit, and waiting does not fill it."""
    return Fault(
        f"{said}; top up the account, or set another OPENAI_API_KEY", plainly=QUOTA, again=False, status=429
    )


def _wait(error: openai.APIStatusError) -> float | None:
    """Return the seconds of `retry-after-ms` or `retry-after`; a date is not worth reading for a chat."""
    headers = error.response.headers
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) / divisor)
        except ValueError:
            continue
    return None
