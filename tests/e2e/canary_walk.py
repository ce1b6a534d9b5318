"""Exercise everything in a service that handles secrets or phone numbers. `walk_through` does all of it once."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from tests.e2e.canary_search import Canary, text_canary
from tests.e2e.canary_walker import PHONES, SHARE, WITHOUT, Walk, Walker, echoing_receiver
from tests.e2e.conftest import OwnProject, Phone, make_phone
from tests.e2e.openid import Client, answer_of, begin, create_client, new_browser
from tests.ports import free_port


def user(walker: Walker, name: str) -> Phone:
    """Return a user whose contact has the phone number of that name."""
    return make_phone(walker.client, "Somebody", phone=PHONES[name])


def phones_and_project_bot(walker: Walker, webhook_url: str) -> OwnProject:
    """Require a number in a project bot, with a match code and a verifier; the bot breaks later."""
    bot = walker.messenger("bots", {"username": "canary_own_bot"})
    walker.note("bot token", bot["token"])
    project = walker.make_project(
        "Canary", bot_token=bot["token"], collect_phone=True, match_code="on", webhook_url=webhook_url
    )
    verifier = secrets.token_urlsafe(32)
    session = walker.start(project, verifier)
    chat = walker.chat(user(walker, "own contact"), "canary_own_bot")
    chat.open_and(session, session["match_code"])
    foreign = {"phone_number": PHONES["foreign contact"], "first_name": "Foreign"}
    chat.do("share", contact=foreign)
    old = {
        "phone_number": PHONES["old number, forwarded"],
        "first_name": "Old",
        "user_id": int(chat.phone.messenger_id),
    }
    chat.do("share", contact=foreign | {"user_id": 99})
    chat.do("send", text=PHONES["typed number"])
    chat.do("send", text=PHONES["typed number"].removeprefix("+"))
    chat.do("send", text=f"/start {verifier}")
    chat.do("press", button=SHARE)
    walker.read(project, session)
    walker.read(project, session, secrets.token_urlsafe(32))
    answer = walker.read(project, session, verifier)
    assert answer["messenger_phone"] == PHONES["own contact"], answer
    # A contact sent after the decision is ignored, and so is an account's former number.
    chat.do("share", contact=old, forwarded_from=int(chat.phone.messenger_id))
    wrong = walker.start(project)
    codes = chat.do("open", deeplink=wrong["deeplink"])["messages"][-1]["buttons"][0]
    chat.do("tap", button=next(code for code in codes if code != wrong["match_code"]))
    return project


def optional_phones(walker: Walker, webhook_url: str) -> OwnProject:
    """Request optional numbers with the service's own bot: one without a plus, one declined, one never given."""
    project = walker.make_project("Optional", collect_phone=True, phone_required=False, webhook_url=webhook_url)
    session = walker.start(project)
    chat = walker.chat(user(walker, "own contact, no plus"))
    chat.open_and(session, "Confirm")
    chat.do("share", contact="own")
    assert walker.read(project, session)["messenger_phone"] == f"+{PHONES['own contact, no plus']}"
    for name, button in (("own contact of who declined", WITHOUT), ("own contact that was not wanted", "Cancel")):
        session = walker.start(project)
        chat = walker.chat(user(walker, name))
        chat.open_and(session, "Confirm")
        chat.do("tap", button=button)
        chat.do("share", contact="own")
        walker.read(project, session)
    session = walker.start(project)
    walker.chat(user(walker, "own contact, never given")).open_and(session, "Confirm")
    return project


def same_device(walker: Walker) -> None:
    """Return to the browser twice: with the code of a button that was replaced, and with the latest one."""
    origins = ["https://shop.example"]
    project = walker.make_project("Same device", same_device="require", allowed_origins=origins)
    verifier = secrets.token_urlsafe(32)
    session = walker.start(project, verifier, return_url="https://shop.example/sign-in")
    chat = walker.chat(user(walker, "own contact"))
    chat.open_and(session, "Confirm")
    for status in ("pending", "confirmed"):
        shown = chat.do("open", deeplink=session["deeplink"])
        [[button], *_] = shown["messages"][-1]["inline_keyboard"]
        code = walker.note("return code", button["url"].partition("=")[2])
        if status == "pending":
            chat.do("open", deeplink=session["deeplink"])
        assert walker.read(project, session, verifier, return_code=code)["status"] == status


def management(walker: Walker) -> None:
    """Use every call that creates, replaces or shows a secret; then delete what it belongs to."""
    developer = walker.developer
    project = walker.make_project("Managed", webhook_url=f"{walker.walk.service.base_url}/healthz")
    path = f"/projects/{project.id}"
    key = {"Authorization": f"Bearer {project.secret_key}"}
    session = walker.client.post("/api/v1/generate", headers=key, json={}).json()
    walker.note("session token", session["session_token"])
    walker.client.post("/api/v1/verify", headers=key, json=session)
    walker.note("webhook secret", developer.ask("POST", f"{path}/webhook-secret/rotate")["next_webhook_secret"])
    test = developer.ask("POST", f"{path}/webhook-test")
    developer.ask("POST", f"/deliveries/{test['id']}/resend")
    developer.ask("POST", f"{path}/webhook-secret/promote")
    for name, secret in developer.ask("POST", f"{path}/regenerate").items():
        walker.note(name.replace("_", " "), secret)
    created = developer.ask(
        "POST", f"{path}/clients", json={"name": "Canary", "redirect_uris": ["https://app.example/"]}
    )
    client = f"{path}/clients/{created['client_id']}"
    walker.note("client secret", created["client_secret"])
    walker.note("client secret", developer.ask("POST", f"{client}/regenerate")["client_secret"])
    developer.ask("PATCH", client, json={"auth_method": "none"})
    walker.note("client secret", developer.ask("PATCH", client, json={"auth_method": "post"})["client_secret"])
    token = developer.ask("POST", "/tokens", json={"name": "canary"})
    walker.note("access token", token["access_token"])
    for each in ("/me", "/tokens", "/projects", path, f"{path}/webhook-secret", f"{path}/clients", "/analytics"):
        developer.ask("GET", each)
    developer.ask("DELETE", path)


def openid(walker: Walker) -> None:
    """Sign in with a pushed request, use every token and the code twice, push a hint, sign out, and begin a device."""
    project = walker.make_project("OpenID")
    grants = ["authorization_code", "device_code", "refresh_token"]
    told = f"{walker.walk.service.base_url}/healthz"
    shop = create_client(walker.developer, project.id, grant_types=grants, backchannel_logout_uri=told)
    state, nonce = (f"canary{secrets.token_hex(16)}" for _ in range(2))
    with new_browser(walker.walk.service.base_url) as browser:
        browser.event_hooks = walker.client.event_hooks
        pushed = browser.post("/oidc/par", data=shop.request(state=state, nonce=nonce), auth=shop.auth).json()
        browser.get("/oidc/authorize", params={"client_id": shop.id, "request_uri": pushed["request_uri"]})
        page = begin(browser, shop, state=state, nonce=nonce, scope="openid profile offline_access")
        deeplink = page.deeplink
        make_phone(walker.client, "Somebody").sign_in({"deeplink": deeplink})
        code = walker.note("code", answer_of(page.load())["code"])
        tokens = shop.redeem(code).json()
        assert shop.userinfo(tokens["access_token"]).status_code == 200
        use_refresh_tokens(walker, browser, project.id, shop, tokens)
        assert {shop.redeem(code).status_code, shop.userinfo(tokens["access_token"]).status_code} == {400, 401}
        hinted = shop.request(id_token_hint=tokens["id_token"])
        assert browser.post("/oidc/par", data=hinted, auth=shop.auth).status_code == 201
        assert browser.get("/oidc/authorize", params=hinted | {"prompt": "none"}).status_code == 303
        device = browser.post("/oidc/device_authorization", data={"scope": "openid"}, auth=shop.auth).json()
        typed = {"user_code": device["user_code"], "action": "continue"}
        assert browser.post("/device", data=typed, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303
        cookies = list(browser.cookies.values())
    assert len(cookies) == 3
    for cookie in cookies:
        walker.note("cookie of OpenID", cookie)
    walker.note("client secret", shop.created["client_secret"])
    walker.note("session token", deeplink.partition("?start=")[2])
    walker.note("pushed request", pushed["request_uri"].rpartition(":")[2])
    walker.note("code verifier", shop.verifier)
    for name in ("access_token", "id_token"):
        walker.note(f"{name} of OpenID", tokens[name].rpartition(".")[2])
    walker.note("device code", device["device_code"])
    # The database keeps these for the application until the sign-in is over.
    walker.walk.names += [state, nonce, device["user_code"], device["user_code"].replace("-", "")]


def use_refresh_tokens(
    walker: Walker, browser: httpx.Client, project_id: str, shop: Client, tokens: dict[str, Any]
) -> None:
    """Refresh, introspect, revoke an access token, use a refresh token twice, sign out, and be told of a logout."""

    def refresh(token: str) -> dict[str, Any]:
        walker.note("refresh token", token)
        form = {"grant_type": "refresh_token", "refresh_token": token}
        answer: dict[str, Any] = browser.post("/oidc/token", data=form, auth=shop.auth).json()
        return answer

    first = tokens["refresh_token"]
    refreshed = refresh(first)
    for name in ("access_token", "id_token"):
        walker.note(f"{name} of a refresh", refreshed[name].rpartition(".")[2])
    for token in (refreshed["refresh_token"], refreshed["access_token"]):
        assert browser.post("/oidc/introspect", data={"token": token}, auth=shop.auth).json()["active"]
    assert browser.post("/oidc/revoke", data={"token": refreshed["access_token"]}, auth=shop.auth).status_code == 200
    again = refresh(refreshed["refresh_token"])
    assert refresh(first)["error"] == "invalid_grant"
    walker.note("refresh token", again["refresh_token"])
    sid = shop.read_id_token(again["id_token"])["sid"]
    walker.developer.ask("DELETE", f"/projects/{project_id}/clients/{shop.id}/grants/{sid}")
    assert browser.get("/oidc/end_session", params={"id_token_hint": again["id_token"]}).status_code == 200
    walker.note("id_token of a refresh", again["id_token"].rpartition(".")[2])


def broken_bot(walker: Walker, project: OwnProject) -> None:
    """Revoke the token, then let the developer's repairs fail in every way before one succeeds."""
    token = walker.messenger("bots/canary_own_bot/revoke", {})["token"]
    walker.note("bot token after a revocation", token)
    path = f"/projects/{project.id}"
    walker.until(path, lambda answer: answer["bot_broken_at"] is not None)
    for _ in range(2):
        walker.client.post("/api/v1/generate/public", json={"project_id": project.id})
    unknown = walker.note("unknown bot token", f"3999999999:{secrets.token_hex(16)}abc")
    for bad in (unknown, f"{unknown}\n", unknown * 40, [unknown], {"token": unknown}, unknown.replace(":", "")):
        assert walker.developer.call("PATCH", path, json={"bot_token": bad}).status_code == 400
    assert walker.developer.call("PATCH", path, json={"name": 5, "bot_token": token}).status_code == 400
    walker.messenger("faults", {"method": "getMe", "error_code": 500, "description": f"at bot{token}", "times": 3})
    walker.developer.call("PATCH", path, json={"bot_token": token})
    walker.client.delete("/sandbox/faults")
    walker.developer.ask("PATCH", path, json={"bot_token": token})
    assert walker.developer.call("POST", "/projects", json={"name": "Taken", "bot_token": token}).status_code == 400


def failing_messenger(walker: Walker, project: OwnProject) -> None:
    """Let the Bot API fail during a sign-in, with messages that repeat the request."""
    session = walker.start(project)
    description = f"Bad Request: start={session['session_token']}"
    walker.messenger("faults", {"method": "editMessageText", "error_code": 400, "description": description, "times": 3})
    chat = walker.chat(make_phone(walker.client, "Somebody"))
    chat.open_and(session, "Confirm")
    walker.client.delete("/sandbox/faults")
    walker.read(project, session)
    reported = walker.start(project)
    chat.open_and(reported, "This wasn\N{RIGHT SINGLE QUOTATION MARK}t me")
    chat.do("send", text="/sessions")


def console(walker: Walker) -> None:
    """Open every console page that shows or hides a phone number or a secret."""
    with httpx.Client(base_url=walker.client.base_url, event_hooks=walker.client.event_hooks, timeout=60) as browser:
        origin = {"Origin": walker.walk.service.base_url}
        sign_in = {"access_token": walker.walk.service.access_token, "next": "/console/projects"}
        assert browser.post("/console/sign-in/token", data=sign_in, headers=origin).status_code == 303
        for name, value in browser.cookies.items():
            walker.note(f"cookie {name}", value)
        projects = walker.developer.ask("GET", "/projects")["projects"]
        sessions = walker.developer.ask("GET", "/sessions")["sessions"]
        pages = [f"projects/{each['id']}" for each in projects] + [f"sessions/{each['id']}" for each in sessions]
        for page in ("projects", "sessions", "analytics", "tokens", "audit", "account", "team", *pages):
            browser.get(f"/console/{page}")
        for bad in (walker.walk.secrets["access token"] + "x", PHONES["number in an error"]):
            browser.post("/console/sign-in/token", data={"access_token": bad}, headers=origin)
            browser.get(f"/console/{bad}")
            browser.get(f"/console/sessions?cursor={bad}&project_id={bad}")
            browser.post(f"/console/{pages[0]}", data={"bot_token": bad, "name": bad * 9}, headers=origin)
            browser.post(
                "/console/sign-in/token", data={"access_token": bad}, headers={"Origin": "https://evil.example"}
            )
            browser.get("/console/projects", headers={"Cookie": f"taproof_session={bad}"})


def errors(walker: Walker, project: OwnProject) -> None:
    """Put a few of each kind of secret wherever a caller may put one by mistake; each answer is an error."""
    wanted = ("bot token", "client secret", "code verifier", "cookie", "master key", "proof", "session token")
    values = [next(value for name, value in walker.walk.secrets.items() if name.startswith(each)) for each in wanted]
    client, developer = walker.client, walker.developer
    developer.ask("PATCH", f"/projects/{project.id}", json={"allowed_origins": ["https://shop.example"]})
    for value in (*values, PHONES["number in an error"], PHONES["number in an error"].removeprefix("+")):
        public = {"project_id": project.id, "session_token": value[:-1] + "~"}
        client.post("/api/v1/generate/public", json={"project_id": [value]})
        client.post("/api/v1/generate/public", json={"project_id": project.id, "code_challenge": value + "~"})
        client.post("/api/v1/generate/public", json={"project_id": project.id}, headers={"Origin": f"https://{value}"})
        client.post("/api/v1/verify/public", json=public | {"code_verifier": value + "~"})
        client.post("/api/v1/verify/public", json={"project_id": value, "session_token": value})
        client.post("/api/v1/verify/public", json=public, headers={"Content-Type": f"text/{value[:20]}"})
        client.post("/api/v1/verify/public", content=f'{{"session_token": "{value}"', headers=_JSON)
        client.post("/api/v1/verify/public", content=f'["{value}"]', headers=_JSON)
        client.post("/api/v1/verify/public", content=json.dumps({"x": value * 400}), headers=_JSON)
        client.post("/api/v1/verify/public", content=value.encode("utf-16"), headers=_JSON)
        client.post("/api/v1/verify", json=public, headers={"Authorization": f"Bearer {value}"})
        client.get("/api/v1/dev/me", headers={"Authorization": f"Bearer {value}"})
        client.post("/api/v1/login", json={"name": {"x": value}})
        client.post("/api/v1/login/token", json={"device_code": value})
        client.post("/bot/webhook", json={"x": value}, headers={"X-Telegram-Bot-Api-Secret-Token": value})
        client.get(f"/{value}?{value}={value}", headers={"Cookie": f"taproof_session={value}"})
        client.request("PUT", f"/api/v1/dev/{value}", content=value)
        developer.call("DELETE", f"/users/{value}x")
        developer.call("PATCH", f"/projects/{project.id}", json={value: value})
        developer.call("PATCH", f"/projects/{project.id}", json={"collect_phone": value, "match_code": value})
        developer.call("PATCH", f"/projects/{project.id}", json={"allowed_origins": [f"http://{value}/?"]})
        developer.call("PATCH", f"/projects/{project.id}", json={"bot_token": value + " "})
        developer.call("GET", f"/sessions?messenger_id={value}&status={value}&cursor={value}&limit={value}")
        developer.call("GET", f"/deliveries/{value}")
        developer.call("DELETE", f"/tokens/{value}")
        developer.call("POST", "/tokens", json={"name": "n", "expires_at": value})
        developer.call("POST", f"/projects/{project.id}/clients", json={"name": "n", "redirect_uris": [value]})
        developer.call("PATCH", f"/projects/{project.id}", json={"webhook_url": f"gopher://{value}"})
        client.post("/oidc/token", data={"client_id": value, "client_secret": value, "code": value})
        client.post("/oidc/token", data={"client_id": value, "grant_type": "refresh_token", "refresh_token": value})
        client.post("/oidc/revoke", data={"client_id": value, "token": value})
        client.get("/oidc/end_session", params={"id_token_hint": value, "post_logout_redirect_uri": value})
        client.get("/oidc/userinfo", headers={"Authorization": f"Bearer {value}"})
        client.get("/oidc/authorize", params={"client_id": value, "request_uri": value})
        client.get(f"/oidc/authorize/{value}", headers={"Cookie": f"taproof_oidc_{value}={value}"})


_JSON = {"Content-Type": "application/json"}


def floods(walker: Walker, project: OwnProject) -> None:
    """Make too many calls from one address. Each refused call contains a secret."""
    far = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "Origin": "https://shop.example"}
    number = PHONES["number in an error"]
    token = walker.start(project)["session_token"]
    for path, body in (
        ("generate/public", {"project_id": project.id, "phone": number}),
        ("verify/public", {"project_id": project.id, "session_token": token, "phone": number}),
        ("login", {"name": number}),
    ):
        for _ in range(80):
            if walker.client.post(f"/api/v1/{path}", json=body, headers=far).status_code == 429:
                break
        else:
            raise AssertionError(f"{path} was never refused")


def walk_through(walk: Walk) -> None:
    """Run every step once."""
    with (
        httpx.Client(base_url=walk.service.base_url, timeout=60) as client,
        echoing_receiver(walk, 500) as failing,
        echoing_receiver(walk, 200) as well,
    ):
        walker = Walker(client, walk)
        project = phones_and_project_bot(walker, failing)
        optional = optional_phones(walker, well)
        same_device(walker)
        unreachable = walker.make_project("Unreachable", webhook_url=f"http://127.0.0.1:{free_port()}/hook")
        failing_messenger(walker, unreachable)
        broken_bot(walker, project)
        for each in (project, optional, unreachable):
            walker.until(f"/projects/{each.id}/deliveries", lambda answer: _all_tried(answer["deliveries"]))
        management(walker)
        openid(walker)
        console(walker)
        commands(walker)
        errors(walker, project)
        floods(walker, project)


def commands(walker: Walker) -> None:
    """Run the operator's commands. A developer's new access token is printed once, by one command only."""
    created = json.loads(walker.command("developers", "add", "canary@example.com", "--json"))
    walker.note("access token", created["access_token"])
    walker.walk.outputs.pop()
    walker.command("developers", "plan", "canary@example.com", "pro")
    walker.command("audit", "--sandbox", "--developer", "sandbox@localhost")


def _all_tried(deliveries: list[dict[str, Any]]) -> bool:
    return bool(deliveries) and all(each["attempts"] for each in deliveries)


@dataclass
class Erased:
    """An erased user, with every string that identifies that user."""

    messenger_id: str
    canaries: list[Canary]


def sign_in_and_erase(walker: Walker, messenger_id: int, erase: Callable[[str], object]) -> Erased:
    """Let a user with unique names and a unique number sign in often, next to another user, and be erased."""
    names = [f"{name}{secrets.token_hex(8)}" for name in ("Erased", "Gone", "nobody_")]
    number = PHONES["own contact of who was erased"]
    phone = make_phone(walker.client, names[0], id=messenger_id, last_name=names[1], username=names[2], phone=number)
    other = make_phone(walker.client, "Somebody")
    project = walker.make_project("Erasing", collect_phone=True)
    for who in [phone, other] * 4:
        session = walker.start(project)
        chat = walker.chat(who)
        chat.open_and(session, "Confirm")
        chat.do("press", button=SHARE)
        walker.read(project, session)
    walker.chat(phone).do("open", deeplink=walker.start(project)["deeplink"])  # Opened, and never decided.
    assert len(walker.developer.ask("GET", f"/sessions?messenger_id={phone.messenger_id}")["sessions"]) == 4
    erase(phone.messenger_id)
    return Erased(phone.messenger_id, identity_canaries(phone.messenger_id, *names))


def identity_canaries(messenger_id: str, *names: str) -> list[Canary]:
    """Return the id and the names of a user as canaries."""
    return [text_canary("messenger id", messenger_id), *(text_canary("name", name) for name in names)]
