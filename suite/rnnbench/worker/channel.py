"""The private channel between the suite and a worker: lines of JSON, on a socket that no compiler prints to."""

from __future__ import annotations

import select
import socket
import time

MAX_LINE = 256 << 20
"""Most bytes of one line. The longest line is a block of calls: 20 MB for one second of the fastest calls."""


class ChannelClosedError(Exception):
    """The other end has closed the channel."""


class LineTooLongError(Exception):
    """The other end sent a line of more than `max_line` bytes. Nothing after it can be read."""


class Channel:
    """One end of a channel. It carries lines of bytes; `protocol` says what they mean."""

    def __init__(self, end: socket.socket, max_line: int = MAX_LINE) -> None:
        self._socket = end
        self._buffer = bytearray()
        self._searched = 0
        """Bytes at the start of the buffer that are known to contain no line end."""
        self._max_line = max_line
        self.answers = 0
        """The number of the command that this end answers."""

    def send(self, line: bytes, timeout: float | None = None) -> None:
        """Send `line`, which has no line end. Raises ChannelClosedError, and TimeoutError after `timeout` seconds."""
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
        """The next line, or None after `timeout` seconds, even if bytes without a line end keep arriving.

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
        """Whether the other end has sent bytes that were not received yet."""
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
