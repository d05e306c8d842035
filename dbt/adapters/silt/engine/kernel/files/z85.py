"""Encodes bytes as Z85 strings, with five characters for each four bytes, and decodes them.

Source: ZeroMQ RFC 32. Z85 is the Base85 of RFC 1924 with a different alphabet.
"""

from __future__ import annotations

import base64
from typing import Final

_RFC_1924: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85 = str.maketrans(_RFC_1924, _Z85)
_PAD = "#"
# A character that is only in the alphabet of RFC 1924 is invalid in Z85.
_FROM_Z85 = str.maketrans({**dict.fromkeys(set(_RFC_1924) - set(_Z85), " "), **dict(zip(_Z85, _RFC_1924, strict=True))})


def encode(data: bytes) -> str:
    """Encodes bytes; their number must be a multiple of four.

    Raises:
        ValueError: if it is not a multiple of four.
    """
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes are not a multiple of four")
    return base64.b85encode(data).decode().translate(_TO_Z85)


def decode(text: str) -> bytes:
    """Decodes a string.

    Raises:
        ValueError: if the string is not Z85.
    """
    if len(text) % 5:
        raise ValueError(f"{len(text)} characters are not a multiple of five")
    whole, last = text[:-5], text[-5:]
    if last.startswith(_PAD):
        return base64.b85decode(whole.translate(_FROM_Z85)) + _short_block(last.lstrip(_PAD))
    return base64.b85decode(text.translate(_FROM_Z85))


def _short_block(characters: str) -> bytes:
    """Decodes a last block of 1 to 3 bytes, which has padding in front.

    delta-kernel-rs writes such blocks. The padding is the last digit, which no block of four bytes can begin with.
    """
    if len(characters) < 2:
        raise ValueError("the last block is all padding")
    number = 0
    for character in characters:
        number = number * len(_Z85) + _Z85.index(character)
    try:
        return number.to_bytes(len(characters) - 1, "big")
    except OverflowError as error:
        raise ValueError(f"`{characters}` stands for too many bytes") from error
