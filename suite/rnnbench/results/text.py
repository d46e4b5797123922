"""Text of records (names, reasons, notes) as output needs it: one visible line, a file name, a cell of a table.

`outside_text` makes text safe where it enters the suite. Records of other versions have not passed it.

Rows and names of files use these functions themselves. `reports.escape` builds Markdown and terminal lines on them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

LONGEST_SHOWN = 2_000
"""Characters of one text in a page. The record has the whole of it."""
LONGEST_FILE_NAME = 120
"""UTF-8 bytes of a name made by `file_name`: file systems allow 255, and callers add a prefix and an ending."""
DIGEST_DIGITS = 8
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co"})
"""Unicode categories that show nothing or change what stands beside them: control characters, bidi controls, lone
surrogates, characters that are private or not assigned."""
_PLAIN = re.compile(r"[ -~]*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tabs and line feeds. A carriage return ends a row for a reader of CSV."""
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a formula may begin with. The last four are the signs in full width, which spreadsheets take too (OWASP, "CSV
Injection")."""


def visible(text: str, longest: int = LONGEST_SHOWN) -> str:
    """One line of `text`: white space as spaces, characters that cannot be seen as escapes (`\\x1b`), its end cut."""
    if len(text) > longest:
        text = f"{text[:longest]}… ({len(text) - longest:,} more characters in the record)"
    return text if _PLAIN.fullmatch(text) else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character in "\t\n\r\u2028\u2029":
        return " "
    if unicodedata.category(character) in _HIDDEN:
        return (
            character.encode("ascii", "backslashreplace").decode() if character > "\x7f" else f"\\x{ord(character):02x}"
        )
    return character


def file_name(text: str) -> str:
    """`text` as one part of a path, which never leaves its folder. What had to change gets a digest, to stay unique."""
    safe = re.sub(r"[^\w.+-]+", "_", text.encode("utf-8", "replace").decode())
    short = safe.encode()[:LONGEST_FILE_NAME].decode("utf-8", "ignore").lstrip(".-")
    if short == text and short:
        return short
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_DIGITS]
    return f"{short or 'unnamed'}-{digest}"


def identifier(text: str, longest: int) -> str:
    """`text` as a name: one visible line of up to `longest` bytes. What had to change gets a digest, to stay unique."""
    shown = visible(text)
    if shown == text and text and len(text.encode()) <= longest:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_DIGITS]
    short = shown.encode()[: longest - DIGEST_DIGITS - 1].decode("utf-8", "ignore")
    return f"{short or 'unnamed'}-{digest}"


def writable(text: str) -> str:
    """`text` with lone surrogates, which UTF-8 cannot hold, as escapes (`\\ud800`)."""
    return text.encode("utf-8", "backslashreplace").decode()


def spreadsheet(text: str) -> str:
    """`text` for a cell of CSV. A spreadsheet would run what begins as a formula does, so a `'` goes before it.

    A terminal would run control characters, and many readers take NUL for the end: they are escapes (`\\x1b`).
    """
    shown = _CONTROL.sub(lambda found: _visible(found.group()), text)
    return f"'{shown}" if text.startswith(_FORMULA) else shown
