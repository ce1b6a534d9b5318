"""The TLS of calls to other servers."""

import ssl


def client_context() -> ssl.SSLContext:
    """Return a context that checks the certificate and the name of a server against the CAs of this machine.

    Python 3.13 also refuses certificates without some extensions of RFC 5280, such as an Authority Key Identifier. Many
    private CAs and inspecting proxies leave them out. A forged certificate would have them, so the refusal protects
    nobody, and the service must not stop working because Python is upgraded.
    """
    context = ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
