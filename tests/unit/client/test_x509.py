"""Until when a certificate is valid."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.client.x509 import certificate_expiry
from flyball.testing.certificates import CertificateAuthority


@pytest.mark.parametrize("moment", [datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC), datetime(2077, 1, 1, tzinfo=UTC)])
def test_both_forms_of_time_are_read(moment: datetime) -> None:
    pair = CertificateAuthority().client("me", expires=moment)

    assert certificate_expiry(pair.key + pair.certificate) == moment


@given(st.binary(max_size=200))
def test_nonsense_has_no_expiry(content: bytes) -> None:
    import base64

    text = base64.encodebytes(content)

    assert certificate_expiry(content) is None
    assert certificate_expiry(b"-----BEGIN CERTIFICATE-----\n" + text + b"-----END CERTIFICATE-----") is None
