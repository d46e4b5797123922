"""A look at the bytes of a protobuf message before protobuf's own reader makes objects of them.

2 bytes can be an empty message, which takes 100 bytes and more as an object: a file of 1 GB could ask for 50 GB. This
walk allocates nothing. It follows the wire format (protobuf.dev/programming-guides/encoding) along the descriptors.
"""

from __future__ import annotations

from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


def check_wire(data: bytes, descriptor: Any) -> None:
    """Raises ModelFileError where `data` is no message of this type, or has more than `limits` allow."""
    _Walk(descriptor).message(memoryview(data), descriptor, 0)


class _Walk:
    def __init__(self, descriptor: Any) -> None:
        self._fields = 0
        self._message_type = descriptor.fields_by_name["graph"].TYPE_MESSAGE
        self._text_type = descriptor.fields_by_name["graph"].TYPE_STRING

    def message(self, view: memoryview, descriptor: Any, depth: int) -> None:
        if depth > limits.DEPTH:
            raise ModelFileError(f"its graphs are nested more than {limits.DEPTH // 3} deep; that many are not read")
        position, end, by_number = 0, len(view), descriptor.fields_by_number
        while position < end:
            key, position = _varint(view, position)
            self._count()
            if key >> 3 == 0:
                raise _damaged()
            position, start = self._skip(view, position, key & 7)
            if key & 7 == _BYTES and (field := by_number.get(key >> 3)) is not None:
                self._content(view[start:position], field, depth)

    def _count(self) -> None:
        self._fields += 1
        if self._fields > limits.FIELDS:
            raise ModelFileError(f"it has more than {limits.FIELDS:,} fields; files with so many are not read")

    def _skip(self, view: memoryview, position: int, kind: int) -> tuple[int, int]:
        """Where the field ends, and where its content begins."""
        start = position
        if kind == _VARINT:
            _, position = _varint(view, position)
        elif kind == _BYTES:
            length, start = _varint(view, position)
            position = start + length
        elif kind in (_FIXED32, _FIXED64):
            position += 4 if kind == _FIXED32 else 8
        else:
            raise _damaged()
        if position > len(view):
            raise ModelFileError("it is no ONNX file, or it is cut short: a part of it is longer than what is there")
        return position, start

    def _content(self, content: memoryview, field: Any, depth: int) -> None:
        if field.type == self._message_type:
            self.message(content, field.message_type, depth + 1)
        elif field.type == self._text_type:
            if len(content) > limits.TEXT_BYTES:
                raise ModelFileError(f"it has a text of {len(content):,} bytes ({field.name}); that is not read")
            try:
                str(content, "utf-8")
            except UnicodeDecodeError as error:
                raise ModelFileError(f"it has a text that is not UTF-8 ({field.name})") from error


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    for byte in view[position : position + _LONGEST_VARINT]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise _damaged()


def _damaged() -> ModelFileError:
    return ModelFileError("it is no ONNX file, or it is damaged: its bytes are no protobuf message")
