"""The look at a file's bytes: what protobuf's reader would make too much of is refused, and nothing is allocated."""

from __future__ import annotations

import tracemalloc

import onnx
import onnx_files as files
import pytest

from rnnbench.model_files import ModelFileError, limits
from rnnbench.model_files.formats.onnx.wire import check_wire

DESCRIPTOR = onnx.ModelProto.DESCRIPTOR
GRAPH, NODE, ATTRIBUTE, INNER = b"\x3a", b"\x0a", b"\x2a", b"\x32"
"""Keys of the fields that lead from a model to a graph, its node, the node's attribute and the graph in it."""


def field(key, content):
    length, size = len(content), b""
    while True:
        length, low = length >> 7, length & 0x7F
        size += bytes([low | (0x80 if length else 0)])
        if not length:
            return key + size + content


def nested(levels):
    data = field(NODE, b"")
    for _ in range(levels):
        data = field(NODE, field(ATTRIBUTE, field(INNER, data)))
    return field(GRAPH, data)


@pytest.mark.parametrize("operator", files.GATES)
def test_honest_files_pass(operator):
    check_wire(files.recurrent(operator).SerializeToString(), DESCRIPTOR)


def test_millions_of_empty_messages_are_counted_without_memory(monkeypatch):
    monkeypatch.setattr(limits, "FIELDS", 50_000)
    data = field(GRAPH, b"\x0a\x00" * 60_000)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="more than 50,000 fields"):
        check_wire(data, DESCRIPTOR)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


def test_graphs_in_graphs_have_an_end():
    check_wire(nested(15), DESCRIPTOR)
    with pytest.raises(ModelFileError, match="nested more than 20 deep"):
        check_wire(nested(25), DESCRIPTOR)
    with pytest.raises(ModelFileError, match="nested"):
        check_wire(nested(5_000), DESCRIPTOR)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x00", "no protobuf message"),
        (b"\x0b", "no protobuf message"),
        (b"\xff" * 11, "no protobuf message"),
        (b"\x3a\xff\xff\xff\xff\x7f", "cut short"),
        (b"\x3a\x05ab", "cut short"),
        (b"\x08", "no protobuf message"),
        (field(b"\x12", b"\xff\xfe"), r"not UTF-8 \(producer_name\)"),
        (field(b"\x12", b"a" * ((1 << 20) + 1)), r"a text of 1,048,577 bytes \(producer_name\)"),
    ],
)
def test_other_bytes_are_refused(data, says):
    with pytest.raises(ModelFileError, match=says):
        check_wire(data, DESCRIPTOR)
