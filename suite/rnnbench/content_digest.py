"""The digest in an object of JSON that the suite writes and later trusts: one flipped bit makes another figure.

It is a field of the JSON object, and the digest of the object without it. So it stays right where another tool writes
the object with other spaces, or its numbers in another notation. An earlier rnnbench wrote none.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

DIGEST = "content_digest"
"""The field's name."""
DIGITS = 16
EDITED = f"not as it was written: damaged, or edited; after an edit, delete `{DIGEST}` from it"
"""What is said of an object whose digest is not its own."""
_KEY = f'"{DIGEST}"'.encode()
_BEGIN, _END = b"," + _KEY + b':"', b'"}'
_LENGTH = len(_BEGIN) + DIGITS + len(_END)


class EditedError(ValueError):
    """An object is not as it was written. The message is EDITED."""


def line_with_digest(text: str) -> bytes:
    """A JSON object as one line without its end, with its digest as the last field."""
    return _plain(_with_digest(text))


def text_with_digest(text: str) -> bytes:
    """A JSON object as indented lines, with its digest as the last field."""
    text = json.dumps(_with_digest(text), indent=2, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass") + b"\n"


def intact(text: bytes, *, required: bool = False) -> bytes:
    """A JSON object without its digest. Raises EditedError where it is not as it was written.

    So is one without a digest, where that is `required`.
    """
    content, is_as_written = without_digest(text)
    if not is_as_written or (required and content == text):
        raise EditedError(EDITED)
    return content


def without_digest(text: bytes) -> tuple[bytes, bool]:
    """A JSON object without its digest, and whether it is as it was written. One that has no digest is.

    What is no JSON object is returned as it is.
    """
    line, ending = text[:-_LENGTH] + b"}", text[-_LENGTH:]
    if ending.startswith(_BEGIN) and ending == _BEGIN + _digest(line).encode() + _END:
        return line, True  # Most lines are not parsed for this.
    if _KEY not in text:
        return text, True
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text, True
    if not isinstance(content, dict) or DIGEST not in content:
        return text, True
    digest = content.pop(DIGEST)
    return json.dumps(content).encode(), digest == _digest(_plain(content))


def _with_digest(text: str) -> Any:
    content = json.loads(text)
    return {**content, DIGEST: _digest(_plain(content))}


def _plain(content: Any) -> bytes:
    """The object as the text that its digest is of."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _digest(plain: bytes) -> str:
    return hashlib.sha256(plain).hexdigest()[:DIGITS]
