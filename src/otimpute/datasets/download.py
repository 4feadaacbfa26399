"""Download files, with retries, timeouts and limits on their size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from urllib import request
from urllib.error import HTTPError, URLError

from .source import MAX_BYTES

Report = Callable[[int, int | None], None]  # bytes received, bytes announced

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, in seconds, and how often to try."""

    silence: float = 30.0
    transfer: float = 300.0
    tries: int = 3
    pause: Callable[[float], None] = time.sleep


def download(url: str, patience: Patience, report: Report, max_bytes: int = MAX_BYTES) -> bytes:
    """Download from an http or https address; retry temporary failures, after increasing pauses."""
    for attempt in range(patience.tries - 1):
        try:
            return _get(url, patience, report, max_bytes)
        except (OSError, HTTPException) as error:
            if not _may_pass(error):
                raise
            patience.pause(2.0**attempt)
    return _get(url, patience, report, max_bytes)


def _may_pass(error: Exception) -> bool:
    if isinstance(error, HTTPError):
        return error.code >= 500 or error.code == 429
    cause = error.reason if isinstance(error, URLError) else error
    return isinstance(cause, TimeoutError | ConnectionError | HTTPException)


def _get(url: str, patience: Patience, report: Report, max_bytes: int) -> bytes:
    deadline = time.monotonic() + patience.transfer
    asked = request.Request(url, headers={"User-Agent": "otimpute"})
    with _web().open(asked, timeout=patience.silence) as response:
        announced: int | None = response.length
        received = bytearray()
        # read1 returns what has arrived, so that the deadline also ends a transfer that trickles.
        while (announced is None or len(received) < announced) and (chunk := response.read1(_CHUNK)):
            received += chunk
            report(len(received), announced)
            if len(received) > max_bytes:
                raise ValueError(f"the server sent more than {max_bytes} bytes, which cannot be this data set")
            if time.monotonic() > deadline:
                raise TimeoutError(f"the transfer took more than {patience.transfer:g} s")
    if announced is not None and len(received) < announced:
        raise ConnectionError(f"the transfer broke off after {len(received)} of {announced} bytes")
    return bytes(received)


def _web() -> request.OpenerDirector:
    """Return an opener for http and https only: the default one also follows redirects to ftp and opens local files."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPRedirectHandler(),
        request.HTTPErrorProcessor(),
        request.HTTPDefaultErrorHandler(),
        request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener
