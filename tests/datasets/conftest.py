"""A web server of our own and empty folders: no test of data sets sees the network or a person's files."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from otimpute.datasets.card import Card, checksum
from otimpute.datasets.download import Patience


@pytest.fixture(autouse=True)
def no_network_and_no_files_of_a_person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.delenv("OTIMPUTE_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    connect = socket.create_connection

    def only_here(address: tuple[str, int], *rest: Any, **options: Any) -> socket.socket:
        assert address[0] == "127.0.0.1", f"a test went to {address[0]}"
        return connect(address, *rest, **options)

    monkeypatch.setattr(socket, "create_connection", only_here)


@dataclass(frozen=True)
class Reply:
    body: bytes = b""
    status: int = 200
    announced: int | None = None  # bytes, if the server lies about them
    silence: float = 0.0  # seconds before it answers
    drip: float = 0.0  # seconds between bytes
    location: str | None = None


@dataclass
class Site:
    """What the server answers at each path, in turn; the last answer for ever."""

    address: str
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    stop: Callable[[], None] = lambda: None

    def put(self, path: str, *replies: bytes | dict[str, Any]) -> str:
        """Answer with these bytes, or with a `Reply` of these fields; returns the address."""
        self.replies[path] = [Reply(reply) if isinstance(reply, bytes) else Reply(**reply) for reply in replies]
        return f"{self.address}{path}"


@pytest.fixture
def site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here.asked.append(self.path)
            replies = here.replies.get(self.path, [Reply(status=404)])
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            time.sleep(reply.silence)
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(reply.body) if reply.announced is None else reply.announced))
            if reply.location is not None:
                self.send_header("Location", reply.location)
            self.end_headers()
            try:
                for byte in reply.body if reply.drip else b"":
                    self.wfile.write(bytes([byte]))
                    time.sleep(reply.drip)
                if not reply.drip:
                    self.wfile.write(reply.body)
            except OSError:  # the client hung up, as it should
                pass

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    here = Site(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop() -> None:
        server.shutdown()
        server.server_close()

    here.stop = stop
    yield here
    stop()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def patience(pauses: list[float]) -> Patience:
    return Patience(silence=5.0, pause=pauses.append)


@pytest.fixture
def card() -> Card:
    """A data set of two columns, for which `table` is the file to download."""
    columns, values = ("height", "weight"), np.array([[1.5, 0.1], [-2.0, 1e-5], [0.0, 3.0]])
    return Card("tiny", "A tiny set", len(values), columns, "https://example.org/tiny", checksum(columns, values), "None.")


@pytest.fixture
def table() -> bytes:
    return b"1.5,0.1,label\n-2,0.00001,label\n-0.0,3.000,label\n"
