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
    _Walk(data, descriptor).message(0, len(data), descriptor, 0)


class _Walk:
    def __init__(self, data: bytes, descriptor: Any) -> None:
        self._data = data
        self._fields = 0
        self._message_type = descriptor.fields_by_name["graph"].TYPE_MESSAGE
        self._text_type = descriptor.fields_by_name["graph"].TYPE_STRING
        self._known: dict[str, dict[int, Any]] = {}
        """By name of a message's type: its fields that are looked into, by number."""

    def message(self, position: int, end: int, descriptor: Any, depth: int) -> None:
        if depth > limits.DEPTH:
            raise ModelFileError(f"its graphs are nested more than {limits.DEPTH // 3} deep; that many are not read")
        fields = self._known_fields(descriptor)
        while position < end:
            key, position = self._varint(position, end)
            self._fields += 1
            if self._fields > limits.FIELDS:
                raise ModelFileError(f"it has more than {limits.FIELDS:,} fields; files with so many are not read")
            start, position = self._content(position, end, key)
            if key & 7 == _BYTES and position > start and (field := fields.get(key >> 3)) is not None:
                if field.type == self._message_type:
                    self.message(start, position, field.message_type, depth + 1)
                else:
                    self._check_text(start, position, field.name)

    def _known_fields(self, descriptor: Any) -> dict[int, Any]:
        if descriptor.full_name not in self._known:
            kinds = (self._message_type, self._text_type)
            looked_into = {field.number: field for field in descriptor.fields if field.type in kinds}
            self._known[descriptor.full_name] = looked_into
        return self._known[descriptor.full_name]

    def _content(self, position: int, end: int, key: int) -> tuple[int, int]:
        """Where the content of a field begins and ends."""
        kind, start = key & 7, position
        if key >> 3 == 0 or kind not in (_VARINT, _BYTES, _FIXED32, _FIXED64):
            raise _damaged()
        if kind == _VARINT:
            _, position = self._varint(position, end)
        elif kind == _BYTES:
            length, start = self._varint(position, end)
            position = start + length
        else:
            position += 4 if kind == _FIXED32 else 8
        if position > end:
            raise ModelFileError("it is no ONNX file, or it is cut short: a part of it is longer than what is there")
        return start, position

    def _varint(self, position: int, end: int) -> tuple[int, int]:
        value = shift = 0
        for place in range(position, min(end, position + _LONGEST_VARINT)):
            byte = self._data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, place + 1
            shift += 7
        raise _damaged()

    def _check_text(self, start: int, end: int, name: str) -> None:
        if end - start > limits.TEXT_BYTES:
            raise ModelFileError(f"it has a text of {end - start:,} bytes ({name}); that is not read")
        try:
            self._data[start:end].decode()
        except UnicodeDecodeError as error:
            raise ModelFileError(f"it has a text that is not UTF-8 ({name})") from error


def _damaged() -> ModelFileError:
    return ModelFileError("it is no ONNX file, or it is damaged: its bytes are no protobuf message")
