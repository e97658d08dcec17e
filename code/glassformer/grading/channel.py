"""Messages over a socket, with a deadline and a largest size: the other end is not trusted."""

from __future__ import annotations

import select
import socket
import struct
import time

LARGEST = 32 * 2**20  # bytes in one message
_HEAD = struct.Struct("!I")


class Closed(Exception):
    """The other end is gone."""


class TooMuch(Exception):
    """The other end announced more than may be sent."""


class Channel:
    """One end of a connection that carries byte strings."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.connection.setblocking(False)

    def send(self, message: bytes, deadline: float) -> None:
        """Send a message; TimeoutError if the other end does not take it in time."""
        left = memoryview(_HEAD.pack(len(message)) + message)
        while left:
            self._wait(deadline, writing=True)
            try:
                left = left[self.connection.send(left) :]
            except (BrokenPipeError, ConnectionResetError):
                raise Closed from None

    def receive(self, deadline: float, leash: socket.socket | None = None) -> bytes:
        """Return the next message; `Closed` as soon as the leash has news and there is none."""
        size = _HEAD.unpack(self._read(_HEAD.size, deadline, leash))[0]
        if size > LARGEST:
            raise TooMuch
        return self._read(size, deadline, leash)

    def _read(self, size: int, deadline: float, leash: socket.socket | None) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait(deadline, leash=leash)
            try:
                piece = self.connection.recv(min(size - len(data), 2**16))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Closed
            data += piece
        return bytes(data)

    def _wait(self, deadline: float, writing: bool = False, leash=None) -> None:
        """Return when the connection is ready; the leash counts only when the connection is not."""
        reading = [] if writing else [self.connection]
        watched = reading + ([leash] if leash else [])
        left = max(0.0, deadline - time.monotonic())
        ready, free, _ = select.select(watched, [self.connection] if writing else [], [], left)
        if self.connection in ready or free:
            return
        if not ready:
            raise TimeoutError
        if not select.select(reading, [], [], 0)[0]:
            raise Closed
