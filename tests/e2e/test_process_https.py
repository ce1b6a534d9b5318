"""Only HTTPS is served: TLS in the process or a trusted proxy in front. Everything else is refused."""

import datetime as dt
import socket
import ssl
import subprocess
import sys
import warnings
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.e2e.conftest import Service, make_phone
from tests.e2e.raw_http import assert_refusals
from tests.ports import free_port
from tests.server_logs import server_logs
from tests.waiting import wait_until

HSTS = "strict-transport-security"
PUBLIC = {"X-Forwarded-For": "203.0.113.9"}
ONE_DAY = dt.timedelta(days=1)
_KEY_USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def start(directory: Path, *arguments: str, scheme: str = "http") -> Iterator[tuple[Service, str]]:
    """Start a sandbox that plain HTTP may not reach, wait for its screen, and yield it with its address."""
    port = free_port()
    command = [sys.executable, "-m", "taproof", "serve", "--sandbox", "--port", str(port), *arguments]
    with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
        process = subprocess.Popen(command, cwd=directory, stdout=out, stderr=err)
    service = Service(directory, port, process, {})
    server_logs[directory / "stderr"] = process
    try:
        wait_until(lambda: process.poll() is not None or "Ctrl+C" in service.screen(), "the start screen")
        assert process.poll() is None
        yield service, f"{scheme}://127.0.0.1:{port}"
    finally:
        service.stop()


def sign_in(client: httpx.Client, service: Service) -> dict[str, Any]:
    """Sign a new simulated user in to the demo's project, and return the confirmed answer."""
    project_id = service.screen().partition("TAPROOF_PROJECT_ID=")[2].split()[0]
    session = client.post("/api/v1/generate/public", json={"project_id": project_id}).json()
    make_phone(client, "Grace").sign_in(session)
    body = {"project_id": project_id, "session_token": session["session_token"]}
    answer: dict[str, Any] = client.post("/api/v1/verify/public", json=body).json()
    return answer


def issue(
    name: str, issuer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Create a certificate authority, or a certificate of one for this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    authority, authority_key = issuer or (None, key)
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - ONE_DAY)
        .not_valid_after(now + ONE_DAY)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        # Python 3.13 requires these identifiers, and the usage of an authority's key (RFC 5280, section 4.2.1).
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
    )
    if authority is None:
        signs = dict.fromkeys(_KEY_USES, False) | {"key_cert_sign": True}
        builder = builder.add_extension(x509.KeyUsage(**signs), critical=True)
    if authority is not None:
        names = [x509.IPAddress(ip_address("127.0.0.1")), *map(x509.DNSName, {"localhost", name})]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(authority_key, SHA256()), key


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str, Path]]:
    """Return a sandbox over TLS with a certificate like that of a real authority, its address, and the authority."""
    directory = tmp_path_factory.mktemp("tls")
    authority = issue("Test authority", None)
    certificate, key = issue("localhost", authority)
    (directory / "ca.pem").write_bytes(authority[0].public_bytes(Encoding.PEM))
    (directory / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (directory / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for service, base_url in start(directory, "--tls-cert", "cert.pem", "--tls-key", "key.pem", scheme="https"):
        yield service, base_url, directory / "ca.pem"


def test_tls_in_the_process(tls: tuple[Service, str, Path]) -> None:
    """Every HTTPS answer, even an error, tells browsers to keep using HTTPS; every returned address is https."""
    service, base_url, authority = tls
    assert f"{base_url}/demo" in service.screen()
    with httpx.Client(
        base_url=base_url, verify=ssl.create_default_context(cafile=str(authority)), timeout=60
    ) as client:
        for path, status in (("/healthz", 200), ("/docs", 200), ("/nothing", 404), ("/demo", 200)):
            response = client.get(path)
            assert response.status_code == status
            assert response.headers[HSTS] == "max-age=31536000"


def test_old_tls_is_refused(tls: tuple[Service, str, Path]) -> None:
    """TLS 1.0 and 1.1 are refused (RFC 8996); 1.2 is the oldest accepted version."""
    _, base_url, authority = tls

    def shake_hands(version: ssl.TLSVersion) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        # Otherwise the client itself would refuse the old version, and the test would prove nothing.
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = version
        httpx.get(f"{base_url}/healthz", verify=context, timeout=60).raise_for_status()

    shake_hands(ssl.TLSVersion.TLSv1_2)
    shake_hands(ssl.TLSVersion.TLSv1_3)
    with pytest.raises(httpx.ConnectError, match="alert"):
        shake_hands(ssl.TLSVersion.TLSv1_1)


def test_refusals_over_tls(tls: tuple[Service, str, Path]) -> None:
    """Over TLS, requests that are wrong below or at HTTP get the same answers as over plain HTTP."""
    service, _, authority = tls
    context = ssl.create_default_context(cafile=str(authority))

    def connect() -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", service.port), timeout=60)
        return context.wrap_socket(plain, server_hostname="localhost")

    assert_refusals(connect)


def test_plain_http_on_the_tls_port(tls: tuple[Service, str, Path]) -> None:
    """The TLS port does not answer plain HTTP, not even with a redirect, which would make clients keep using it."""
    _, base_url, _ = tls
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{base_url.replace('https', 'http')}/healthz")


def test_signing_in_over_tls(tls: tuple[Service, str, Path]) -> None:
    """The sandbox works over TLS: its bot trusts the service's own certificate."""
    service, base_url, authority = tls
    with httpx.Client(
        base_url=base_url, verify=ssl.create_default_context(cafile=str(authority)), timeout=30
    ) as client:
        assert sign_in(client, service)["messenger_name"] == "Grace"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, httpx.Client]]:
    """Return a sandbox that trusts a proxy on this machine, and a client that acts as that proxy for a remote user."""
    for service, base_url in start(tmp_path_factory.mktemp("proxied"), "--trusted-proxy", "127.0.0.1/32"):
        with httpx.Client(base_url=base_url, headers=PUBLIC | {"X-Forwarded-Proto": "https"}, timeout=60) as client:
            yield service, client


def test_behind_a_trusted_proxy(proxied: tuple[Service, httpx.Client]) -> None:
    """A request that the proxy received over HTTPS gets HSTS; one that it received over plain HTTP is refused."""
    _, client = proxied
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.headers[HSTS] == "max-age=31536000"
    for protocol in ("http", "https, http"):
        response = client.get("/healthz", headers={"X-Forwarded-Proto": protocol})
        assert response.status_code == 400
        assert response.headers["x-error-code"] == "https_required"
        assert HSTS not in response.headers


def test_the_sandbox_behind_a_trusted_proxy(proxied: tuple[Service, httpx.Client]) -> None:
    """The sandbox's bot calls its own process directly, without the proxy, and gets answers."""
    service, client = proxied
    assert sign_in(client, service)["messenger_name"] == "Grace"
