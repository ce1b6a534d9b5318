"""docs/how-to/tls-and-proxies.md: its configuration works in a real nginx; its Caddyfile is well-formed."""

import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.docs.blocks import block_of
from tests.e2e.conftest import Developer, Service, StartService, free_port

PAGE = "how-to/tls-and-proxies.md"
NGINX = "/usr/sbin/nginx"
PATIENCE = 60.0


@dataclass
class Proxy:
    """An nginx in front of a service."""

    service: Service
    client: httpx.Client


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return a directory with fullchain.pem and privkey.pem for signin.example.com."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=signin.example.com"
    names = ["-addext", "subjectAltName=DNS:signin.example.com,IP:127.0.0.1"]
    files = ["-keyout", str(tmp_path / "privkey.pem"), "-out", str(tmp_path / "fullchain.pem")]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return tmp_path


@pytest.fixture
def proxied(certificate: Path, start_service: StartService) -> Iterator[Proxy]:
    """Yield the page's nginx; only its port, the certificate's path and the service's port differ."""
    assert Path(NGINX).exists(), "Install nginx: the page's configuration is tried out with it."
    service, port = start_service("--trusted-proxy", "127.0.0.1/32"), free_port()
    page = block_of(PAGE, "nginx").text
    changes = {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/nginx/": f"{certificate}/",
        "127.0.0.1:8080": f"127.0.0.1:{service.port}",
    }
    for old, new in changes.items():
        assert old in page
        page = page.replace(old, new)
    places = "\n".join(
        f"{name}_temp_path {certificate}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    configuration = certificate / "nginx.conf"
    configuration.write_text(
        f"daemon off; pid {certificate}/pid; error_log {certificate}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off; {places}\n{page}\n}}\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [NGINX, "-e", f"{certificate}/error.log", "-p", str(certificate), "-c", str(configuration)]
    )
    trust = ssl.create_default_context(cafile=str(certificate / "fullchain.pem"))
    with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trust, timeout=60) as client:
        deadline = time.monotonic() + PATIENCE
        while True:
            assert process.poll() is None, (certificate / "error.log").read_text("utf-8")
            assert time.monotonic() < deadline
            try:
                if client.get("/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.05)
        yield Proxy(service, client)
    process.terminate()
    process.wait(PATIENCE)


def test_the_service_answers_behind_nginx(proxied: Proxy) -> None:
    """Behind nginx the service answers only over HTTPS, with HSTS, and sees the client's real address."""
    answer = proxied.client.get("/healthz")
    assert answer.status_code == 200
    assert "strict-transport-security" in answer.headers
    assert proxied.client.get("/metrics").status_code == 404
    lying = Developer(proxied.client, proxied.service.access_token)
    headers = lying.headers | {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"}
    made = proxied.client.post("/api/v1/dev/projects", headers=headers, json={"name": "Shop"})
    assert made.status_code == 200, made.text
    entries = lying.ask("GET", "/audit?limit=1")["entries"]
    assert "203.0.113.9" not in str(entries)
    assert "127.0.0.1" in str(entries)


def test_who_starts_too_many_sign_ins_is_refused_by_nginx(proxied: Proxy) -> None:
    """The page's limit accepts a person and refuses a flood."""
    body = {"project_id": proxied.service.project_id}
    assert proxied.client.post("/api/v1/generate/public", json=body).status_code == 200
    flood = [proxied.client.post("/api/v1/generate/public", json=body).status_code for _ in range(200)]
    assert set(flood) == {200, 429}


def test_what_goes_wrong_says_what_the_page_says(start_service: StartService) -> None:
    """The error sentences on the page are those of the service."""
    forwarded = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"}
    for arguments, words in (
        ((), "no proxy on this machine is trusted"),
        (("--trusted-proxy", "127.0.0.1/32"), "configure the trusted proxy to send X-Forwarded-Proto"),
    ):
        answer = httpx.get(f"{start_service(*arguments).base_url}/healthz", headers=forwarded)
        assert (answer.status_code, answer.headers["X-Error-Code"]) == (400, "https_required")
        assert words in answer.json()["error"]


def test_the_caddyfile_is_well_formed() -> None:
    """The Caddyfile's blocks are closed, and each line begins with a real directive. Caddy itself is not available."""
    depth = 0
    for line in block_of(PAGE, "caddyfile").text.splitlines():
        words = line.split()
        assert line.startswith("\t" * (depth - (words == ["}"])))
        if words == ["}"]:
            depth -= 1
        elif words[-1] == "{":
            depth += 1
        else:
            assert words[0] in {"respond", "reverse_proxy"}
    assert depth == 0
