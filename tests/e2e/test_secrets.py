"""After a whole sign-in and every management call, no secret is where it must not be."""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

import httpx
import pytest
from tests.e2e.conftest import Developer, OwnProject, Phone, Service, StartService, launch, make_phone
from tests.e2e.openid import answer_of, begin, create_client, new_browser

BOT_TOKEN = re.compile(rb"\d{8,}(?::|%3A)[A-Za-z0-9_-]{30,}")
SECRET = re.compile(rb"(?:sk|tap|ocs|oat|whsec)_[A-Za-z0-9+/]{12,}")
JWT = re.compile(rb"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")


@dataclass
class Canaries:
    """Every secret or personal value of the run, and every error that was answered."""

    service: Service
    secrets: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    errors: list[httpx.Response] = field(default_factory=list)
    oauth_errors: list[httpx.Response] = field(default_factory=list)
    """The errors of the OpenID provider, which have the form of their RFCs."""


def collect_errors(client: httpx.Client, canaries: Canaries, developer: Developer, project_id: str) -> None:
    """Put every secret wherever a caller may put one by mistake; each answer is an error."""
    for secret in sorted(canaries.secrets):
        headers = {"Authorization": f"Bearer {secret}x"}
        canaries.errors += [
            client.post("/api/v1/generate/public", json={"project_id": secret}),
            client.post("/api/v1/verify/public", json={"project_id": project_id, "session_token": f"{secret}x"}),
            client.post("/api/v1/verify/public", content=f'{{"session_token": "{secret}", }}'),
            client.post("/api/v1/verify", headers=headers, json={"session_token": secret}),
            client.get(f"/api/v1/{secret}"),
            client.get("/api/v1/dev/me", headers=headers),
            client.get("/api/v1/dev/me", headers={"Authorization": secret}),
            client.get(f"/sandbox/{secret}"),
            client.post(f"/sandbox/users/{secret}/open", json={"deeplink": f"http://elsewhere/{secret}"}),
            client.post("/sandbox/users/1001/open", json={"deeplink": f"http://elsewhere/{secret}"}),
            developer.call("GET", f"/projects/{secret}"),
            developer.call("DELETE", f"/tokens/{secret}"),
            developer.call("DELETE", f"/projects/{project_id}/clients/{secret}"),
            developer.call("POST", f"/projects/{project_id}/clients", json={"name": "n", "redirect_uris": [secret]}),
            developer.call("GET", f"/sessions?cursor={secret}&status={secret}&limit={secret}"),
            developer.call("POST", "/projects", json={"name": "x" * 101, secret: 1}),
            developer.call("PATCH", f"/projects/{project_id}", json={"webhook_url": f"gopher://{secret}"}),
            developer.call("POST", "/tokens", json={"name": "n", "expires_at": secret}),
        ]
        canaries.oauth_errors += [
            client.post("/oidc/token", data={"client_id": secret, "client_secret": secret, "code": secret}),
            client.get("/oidc/userinfo", headers=headers),
            client.get("/oidc/authorize", params={"client_id": secret, "request_uri": secret}),
            client.get(f"/oidc/authorize/{secret}", headers={"Cookie": f"taproof_oidc_{secret}={secret}"}),
        ]


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaries]:
    """Return a separate service at the debug log level, after everything was done once."""
    service = launch(tmp_path_factory.mktemp("canaries"), TAPROOF_LOG_LEVEL="debug")
    found = Canaries(service)
    try:
        with httpx.Client(base_url=service.base_url, timeout=60) as client:
            _use_everything(client, found)
        yield found
    finally:
        service.stop()


def _use_everything(client: httpx.Client, found: Canaries) -> None:
    service = found.service
    developer = Developer(client, service.access_token)
    project = developer.create_project("Canary", webhook_url=f"{service.base_url}/healthz")
    phone = make_phone(client, "Zyxwvutian", last_name="Qpolnmkish", username="zyx_canary", phone="+15559876543")
    found.names |= {"Zyxwvutian", "Qpolnmkish", "zyx_canary", "15559876543"}
    other = make_phone(client, "Other")
    for button in ("Confirm", "Cancel", "Confirm"):
        session = project.generate()
        phone.sign_in(session, button)
        other.open(session["deeplink"])
        answer = project.verify(session["session_token"])
        project.verify(session["session_token"])
        found.secrets |= {session["session_token"], answer.get("proof", session["session_token"])}
        key = {"Authorization": f"Bearer {project.secret_key}"}
        keyed = client.post("/api/v1/generate", headers=key, json={}).json()
        client.post("/api/v1/verify", headers=key, json=keyed)
        found.secrets |= {keyed["session_token"]}
    rotation = developer.ask("POST", f"/projects/{project.id}/webhook-secret/rotate")
    found.secrets |= {rotation["webhook_secret"], rotation["next_webhook_secret"]}
    test = developer.ask("POST", f"/projects/{project.id}/webhook-test")
    developer.ask("POST", f"/deliveries/{test['id']}/resend")
    developer.ask("GET", f"/projects/{project.id}/deliveries")
    found.secrets |= {developer.ask("POST", f"/projects/{project.id}/webhook-secret/promote")["webhook_secret"]}
    new = developer.ask("POST", f"/projects/{project.id}/regenerate")
    clients = f"/projects/{project.id}/clients"
    new_client = {"name": "Canary", "redirect_uris": ["https://app.example/"]}
    oidc = developer.ask("POST", clients, json=new_client)
    one = f"{clients}/{oidc['client_id']}"
    found.secrets |= {oidc["client_secret"], developer.ask("POST", f"{one}/regenerate")["client_secret"]}
    developer.ask("PATCH", one, json={"auth_method": "none"})
    found.secrets |= {developer.ask("PATCH", one, json={"auth_method": "post"})["client_secret"]}
    token = developer.ask("POST", "/tokens", json={"name": "canary"})
    Developer(client, token["access_token"]).ask("GET", "/me")
    found.secrets |= {project.secret_key, project.webhook_secret, *new.values()}
    found.secrets |= {token["access_token"], service.access_token}
    for path in ("/me", "/projects", f"/projects/{project.id}", f"/projects/{project.id}/webhook-secret", "/sessions"):
        developer.ask("GET", path)
    developer.ask("GET", "/analytics")
    _sign_in_with_openid(found, developer, project, other)
    collect_errors(client, found, developer, project.id)
    doomed = developer.create_project("Doomed")
    found.secrets |= {doomed.secret_key, doomed.webhook_secret, doomed.generate()["session_token"]}
    developer.ask("DELETE", f"/projects/{doomed.id}")
    found.secrets.add(service.add_developer("canary@example.com"))


def _sign_in_with_openid(found: Canaries, developer: Developer, project: OwnProject, phone: Phone) -> None:
    """Sign in with a pushed request, use the code twice, and begin a device's sign-in."""
    shop = create_client(developer, project.id)
    state, nonce = (f"canary{token_hex(16)}" for _ in range(2))
    with new_browser(found.service.base_url) as browser:
        pushed = browser.post("/oidc/par", data=shop.request(state=state, nonce=nonce), auth=shop.auth).json()
        browser.get("/oidc/authorize", params={"client_id": shop.id, "request_uri": pushed["request_uri"]})
        page = begin(browser, shop, state=state, nonce=nonce)
        deeplink = page.deeplink
        phone.sign_in({"deeplink": deeplink})
        code = answer_of(page.load())["code"]
        tokens = shop.redeem(code).json()
        assert shop.userinfo(tokens["access_token"]).status_code == 200
        found.oauth_errors += [shop.redeem(code), shop.userinfo(tokens["access_token"])]
        device = browser.post("/oidc/device_authorization", data={"scope": "openid"}, auth=shop.auth).json()
        same_origin = {"Sec-Fetch-Site": "same-origin"}
        typed = {"user_code": device["user_code"], "action": "continue"}
        assert browser.post("/device", data=typed, headers=same_origin).status_code == 303
        cookies = list(browser.cookies.values())
    assert len(cookies) == 3
    found.secrets |= {shop.created["client_secret"], code, tokens["access_token"], tokens["id_token"], *cookies}
    found.secrets |= {deeplink.partition("?start=")[2], device["device_code"], shop.verifier}
    found.secrets.add(pushed["request_uri"].rpartition(":")[2])
    # The database keeps these for the application until the sign-in is over.
    found.names |= {state, nonce, device["user_code"], device["user_code"].replace("-", "")}


def assert_absent(where: str, content: bytes, wanted: set[str]) -> None:
    """Assert that each string is absent, whole or nearly so, as it is and in JSON, an address or base64."""
    for each in wanted:
        core = each.removeprefix("whsec_")[:40] if len(each) > 44 else each
        for form in (core, core.replace("+", "%2B").replace("/", "%2F"), core.replace("_", "%5F")):
            assert form.encode() not in content, f"{core[:8]}… lies in {where}"
        if len(each) > 30:
            for shift in range(3):
                encoded = base64.b64encode(b"x" * shift + each.encode())[4:-4]
                assert encoded not in content, f"{core[:8]}… lies in {where}, encoded"


def database_files(service: Service) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in Path(service.directory).glob("taproof.db*")}
    assert set(found) >= {"taproof.db", "taproof.db-wal", "taproof.db.key"}
    return {name: content for name, content in found.items() if not name.endswith((".key", ".token"))}


def test_database(canaries: Canaries) -> None:
    """The database and its journal contain no session token, proof, key or webhook secret (contract, Identifiers)."""
    for name, content in database_files(canaries.service).items():
        assert_absent(name, content, canaries.secrets)
        assert not SECRET.search(content)
        assert not JWT.search(content)
        assert not BOT_TOKEN.search(content)


def test_database_holds_what_it_may(canaries: Canaries) -> None:
    """The search works: it finds the messenger identity, which the spec requires to be stored."""
    contents = b"".join(database_files(canaries.service).values())
    assert b"Zyxwvutian" in contents
    assert b"zyx_canary" in contents
    assert b"15559876543" not in contents


def test_master_key(canaries: Canaries) -> None:
    """Only the owner can read the master key, and it is nowhere else (issue)."""
    path = canaries.service.directory / "taproof.db.key"
    assert path.stat().st_mode & 0o777 == 0o600
    key = path.read_text().strip()
    assert len(base64.urlsafe_b64decode(key)) == 32
    places = database_files(canaries.service) | {"log": canaries.service.log().encode()}
    places["screen"] = canaries.service.screen().encode()
    for name, content in places.items():
        assert key.encode() not in content, name
        assert base64.urlsafe_b64decode(key) not in content, name


def test_token_file(canaries: Canaries) -> None:
    """Only the owner can read the access token that the sandbox keeps for its next start."""
    path = canaries.service.directory / "taproof.db.token"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().strip() == canaries.service.access_token


def test_log(canaries: Canaries) -> None:
    """At debug level the log contains no secret, token or name (issue, structured logs)."""
    log = canaries.service.log().encode()
    assert b"webhooks.attempt" in log
    assert b'"debug"' in log
    assert_absent("the log", log, canaries.secrets | canaries.names)
    assert not SECRET.search(log)
    assert not JWT.search(log)
    assert not BOT_TOKEN.search(log)
    for line in log.splitlines():
        assert isinstance(json.loads(line), dict)


def test_metrics(canaries: Canaries) -> None:
    """No secret, name or identifier is a label of a metric (issue)."""
    metrics = httpx.get(f"{canaries.service.base_url}/metrics").content
    assert b"taproof_developer_requests_total" in metrics
    assert_absent("/metrics", metrics, canaries.secrets | canaries.names)
    for pattern in (SECRET, JWT, BOT_TOKEN, re.compile(rb"(?:proj|sess|dev|tok|evt)_[A-Za-z0-9]{16,}")):
        assert not pattern.search(metrics)


def test_errors(canaries: Canaries) -> None:
    """No error repeats what the caller sent, even a secret sent by mistake (issue)."""
    assert len(canaries.errors) > 100
    assert len(canaries.oauth_errors) > 50
    for response in canaries.oauth_errors:
        assert 400 <= response.status_code < 500, response.text
        told = response.content + str(response.headers.raw).encode()
        assert_absent(f"the answer to {response.request.url.path[:20]}", told, canaries.secrets | canaries.names)
    for response in canaries.errors:
        assert 400 <= response.status_code < 500, response.text
        assert list(response.json()) == ["error"]
        told = response.content + str(response.headers.raw).encode()
        assert_absent(f"the answer to {response.request.method}", told, canaries.secrets | canaries.names)


def test_screen(canaries: Canaries) -> None:
    """The screen shows the sandbox's access token and no other secret (issue, the command line)."""
    screen = canaries.service.screen().encode()
    assert_absent("the screen", screen, canaries.secrets - {canaries.service.access_token})
    assert screen.count(canaries.service.access_token.encode()) == 1


def test_restart(start_service: StartService, canaries: Canaries) -> None:
    """After a restart, issued credentials still work and are still nowhere, with the journal merged."""
    canaries.service.stop()
    service = start_service(directory=canaries.service.directory)
    assert service.access_token == canaries.service.access_token
    content = service.database.read_bytes()
    assert b"Zyxwvutian" in content
    assert_absent("the database", content, canaries.secrets | {service.access_token})
