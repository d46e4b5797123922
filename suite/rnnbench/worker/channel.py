"""The private line between the suite and a worker: JSON objects, one a line, on a socket that no compiler prints to."""

from __future__ import annotations

import select
import socket
import time


class ChannelClosedError(Exception):
    """The other end is gone."""


class Channel:
    """One end of the line. It carries lines of bytes; `protocol` says what they mean."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = bytearray()

    def send(self, line: bytes) -> None:
        """Send one line without its end. Raises ChannelClosedError."""
        try:
            self._socket.sendall(line + b"\n")
        except OSError as error:
            raise ChannelClosedError from error

    def receive(self, timeout: float | None = None) -> bytes | None:
        """The next line, or None after `timeout` seconds. Raises ChannelClosedError."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (end := self._buffer.find(b"\n")) < 0:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._socket], [], [], left)[0]:
                return None
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _fill(self) -> None:
        try:
            received = self._socket.recv(1 << 16)
        except ConnectionError as error:
            raise ChannelClosedError from error
        if not received:
            raise ChannelClosedError
        self._buffer += received

    def close(self) -> None:
        self._socket.close()
