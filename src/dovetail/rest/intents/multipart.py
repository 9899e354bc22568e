"""Forms with files (multipart/form-data, RFC 7578): read strictly, and written."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP

import msgspec

from dovetail.core.errors import Malformed

FORM = "multipart/form-data"
MOST_PARTS = 16
LONGEST_HEAD_BYTES = 8 * 2**10
BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")


class BadForm(Malformed):
    """A body that is no form, or not all of one."""


class FormPart(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    content: bytes
    media_type: str = "application/octet-stream"
    file_name: str = ""


def read_form(content_type: str, body: bytes) -> dict[str, bytes]:
    """Contents by name. Raises BadForm."""
    delimiter = b"\r\n--" + boundary_of(content_type).encode()
    _, *pieces = (b"\r\n" + body).split(delimiter)
    if not pieces or not pieces[-1].startswith(b"--"):
        raise BadForm("the form has no end")
    if len(pieces) - 1 > MOST_PARTS:
        raise BadForm(f"the form has more than {MOST_PARTS} parts")
    found: dict[str, bytes] = {}
    for piece in pieces[:-1]:
        name, content = part_in(piece)
        if name in found:
            raise BadForm(f"the form has two parts {name!r}")
        found[name] = content
    return found


def boundary_of(content_type: str) -> str:
    head = Message()
    head["content-type"] = content_type
    boundary = head.get_param("boundary")
    if not isinstance(boundary, str) or not BOUNDARY.fullmatch(boundary):
        raise BadForm("the form has no boundary")
    return boundary


def part_in(piece: bytes) -> tuple[str, bytes]:
    """The name and content of what is between two delimiters."""
    line, found, rest = piece.partition(b"\r\n")
    # Nothing but white space may follow a delimiter on its line.
    if not found or line.strip(b" \t"):
        raise BadForm("a part of the form does not begin with a line of its own")
    head, found, content = rest.partition(b"\r\n\r\n")
    if rest.startswith(b"\r\n") or not found or len(head) > LONGEST_HEAD_BYTES:
        raise BadForm("a part of the form has no head")
    fields = BytesParser(policy=HTTP).parsebytes(head + b"\r\n\r\n", headersonly=True)
    try:
        disposition = fields["content-disposition"]
        name = disposition.params.get("name") if disposition is not None else None
    except (AttributeError, ValueError, IndexError) as error:
        raise BadForm("a part of the form has a head that cannot be read") from error
    if not isinstance(name, str) or not name or len(name) > 255:
        raise BadForm("a part of the form has no name")
    return name, content


def write_form(parts: Iterable[FormPart]) -> tuple[str, bytes]:
    """The content type, with a boundary that is in no part, and the body."""
    boundary = secrets.token_hex(16)
    pieces = []
    for part in parts:
        file_name = f'; filename="{part.file_name}"' if part.file_name else ""
        head = (
            f"--{boundary}\r\n"
            f'content-disposition: form-data; name="{part.name}"{file_name}\r\n'
            f"content-type: {part.media_type}\r\n\r\n"
        )
        pieces.append(head.encode() + part.content + b"\r\n")
    return f"{FORM}; boundary={boundary}", b"".join(pieces) + f"--{boundary}--\r\n".encode()
