"""The private line between the suite and a worker: JSON objects, one a line, on a socket that no compiler prints to."""

from __future__ import annotations

import select
import socket
import time

MAX_LINE = 256 << 20
"""Bytes of one line. The longest that a worker sends is a block of calls: 20 MB for a second of the fastest ones."""


class ChannelClosedError(Exception):
    """The other end is gone."""


class LineTooLongError(Exception):
    """The other end sent more than a line may have. Nothing after it can be read."""


class Channel:
    """One end of the line. It carries lines of bytes; `protocol` says what they mean."""

    def __init__(self, end: socket.socket, max_line: int = MAX_LINE) -> None:
        self._socket = end
        self._buffer = bytearray()
        self._searched = 0
        """Bytes of the buffer that are known to have no end of a line."""
        self._max_line = max_line

    def send(self, line: bytes, timeout: float | None = None) -> None:
        """Send one line without its end. Raises ChannelClosedError, and TimeoutError after `timeout` seconds."""
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(line + b"\n")
        except TimeoutError:
            raise
        except OSError as error:
            raise ChannelClosedError from error
        finally:
            if self._socket.fileno() >= 0:
                self._socket.settimeout(None)

    def receive(self, timeout: float | None = None) -> bytes | None:
        """The next line, or None after `timeout` seconds, also where bytes keep coming without an end of the line.

        Raises ChannelClosedError and LineTooLongError.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if self._searched > self._max_line:
                self._buffer.clear()
                raise LineTooLongError
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._socket], [], [], left)[0]:
                return None
            self._fill()
            if deadline is not None and time.monotonic() > deadline and b"\n" not in self._buffer[self._searched :]:
                return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    @property
    def has_more(self) -> bool:
        """Whether the other end has sent something that was not received yet."""
        try:
            return bool(self._buffer or self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False

    def _fill(self) -> None:
        try:
            received = self._socket.recv(1 << 16)
        except OSError as error:
            raise ChannelClosedError from error
        if not received:
            raise ChannelClosedError
        self._buffer += received

    def close(self) -> None:
        self._socket.close()
