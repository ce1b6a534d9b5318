"""Encode a link with segno, the service's own QR encoder, to compare with the button's encoder."""

from unittest.mock import patch

import segno
from segno import encoder


def expected_modules(text: str) -> list[list[int]]:
    """Return the modules of a code in the button's form: bytes, level L, version 5 or 6, mask 0.

    segno 1.6 adds an extra zero byte before the padding, which scanners ignore; here it is removed.
    """
    data = text.encode()
    with patch.object(encoder, "write_padding_bits", lambda buff, _version, length: buff.extend([0] * (-length % 8))):
        version = 5 if len(data) <= 106 else 6
        code = segno.make(data, error="l", version=version, mask=0, mode="byte", boost_error=False)
    return [list(row) for row in code.matrix]
