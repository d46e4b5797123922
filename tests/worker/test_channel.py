"""A channel carries whole lines, in order, and tells when the other end is gone."""

from __future__ import annotations

import json
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import join

from rnnbench.worker.channel import Channel, ChannelClosedError


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    yield Channel(ours), Channel(theirs)
    ours.close()
    theirs.close()


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none()), max_size=5))
def test_lines_arrive_whole_and_in_order(messages):
    ours, theirs = map(Channel, socket.socketpair())
    for message in messages:
        ours.send(json.dumps(message).encode())
    assert [json.loads(theirs.receive()) for _ in messages] == messages
    ours.close()
    theirs.close()


def test_a_line_longer_than_the_buffers_between_the_ends_arrives_whole(ends):
    ours, theirs = ends
    line = b"x" * 3_000_000
    sender = threading.Thread(target=ours.send, args=(line,))
    sender.start()
    assert theirs.receive() == line
    join(sender)


def test_without_a_line_within_the_timeout_there_is_none(ends):
    assert ends[0].receive(timeout=0.01) is None


def test_half_a_line_waits_for_its_other_half(ends):
    ours, theirs = ends
    ours._socket.sendall(b'{"a": ')
    assert theirs.receive(timeout=0.01) is None
    ours._socket.sendall(b"1}\n")
    assert theirs.receive(timeout=1) == b'{"a": 1}'


def test_a_closed_end_raises_at_the_other_end(ends):
    ours, theirs = ends
    ours.close()
    with pytest.raises(ChannelClosedError):
        theirs.receive()
    with pytest.raises(ChannelClosedError):
        theirs.send(b"x" * 1_000_000)
