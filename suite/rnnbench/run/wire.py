"""The private line between the suite and a worker: JSON objects, one a line, on a socket no compiler prints to."""

from __future__ import annotations

import json
import select
import socket
import time
from typing import Any

Message = dict[str, Any]


class WireClosedError(Exception):
    """The other end is gone."""


class Wire:
    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = bytearray()

    def send(self, message: Message) -> None:
        """Raises WireClosedError."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise WireClosedError from error

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message, or None after `timeout` seconds. Raises WireClosedError."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (end := self._buffer.find(b"\n")) < 0:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._socket], [], [], left)[0]:
                return None
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        message: Message = json.loads(line)
        return message

    def _fill(self) -> None:
        try:
            part = self._socket.recv(1 << 16)
        except ConnectionError as error:
            raise WireClosedError from error
        if not part:
            raise WireClosedError
        self._buffer += part

    def close(self) -> None:
        self._socket.close()
