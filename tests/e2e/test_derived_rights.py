"""Everything that an access token created ends with it, and everything that a reported sign-in created ends too."""

import threading
from typing import Any

import httpx
from tests.e2e.conftest import TRUST, NewPhone, Phone, Service
from tests.e2e.test_reported_developer import CONFIRM, NEWEST, Browser, confirm, invitation
from tests.e2e.test_user_control import TEXTS, newest, said

from taproof.core.names import isolated_name
from taproof.service.console.sign_in import TERMINAL

ME = "/api/v1/dev/me"
TOKENS = "/api/v1/dev/tokens"
ROUNDS = 3
MINTERS = 2
CREATED_FIRST = 4
"""Tokens that each thread creates before the report, to make a race certain."""
HELD = 40
"""Tokens that a thread keeps. A developer has at most 100."""


class Minter(threading.Thread):
    """Creates access tokens with a stolen one, then with the new ones, until every call is refused."""

    def __init__(self, base_url: str, stolen: str) -> None:
        super().__init__(daemon=True)
        self.client = httpx.Client(base_url=base_url, timeout=60, verify=TRUST)
        self.usable = [stolen]
        self.created: list[dict[str, Any]] = []
        self.is_running = threading.Event()
        self.must_stop = threading.Event()

    def run(self) -> None:
        while self.usable and not self.must_stop.is_set():
            headers = {"Authorization": f"Bearer {self.usable[0]}"}
            answer = self.client.post(TOKENS, headers=headers, json={"name": "minted"})
            if answer.status_code != 200:
                self.usable.pop(0)
                continue
            self.created.append(answer.json())
            self.usable.append(self.created[-1]["access_token"])
            if len(self.created) >= CREATED_FIRST:
                self.is_running.set()
            if len(self.usable) > HELD:
                self.client.delete(f"{TOKENS}/{self.created[-HELD]['id']}", headers=headers)
                self.usable.pop(1)

    def survivors(self) -> list[str]:
        """Return the ids of the tokens that still work."""
        return [
            token["id"]
            for token in self.created
            if self.client.get(ME, headers={"Authorization": f"Bearer {token['access_token']}"}).status_code == 200
        ]


def logged_in(client: httpx.Client, phone: Phone) -> str:
    """Return the access token of a `taproof login` that the user was tricked into confirming."""
    started = client.post("/api/v1/login", json={}).json()
    confirm(phone, started["verification_uri_complete"], started["match_code"])
    got = client.post("/api/v1/login/token", json={"device_code": started["device_code"]})
    assert got.status_code == 200, got.text
    token: str = got.json()["access_token"]
    return token


def test_nothing_created_with_a_stolen_token_survives_the_report(
    service: Service, client: httpx.Client, new_phone: NewPhone
) -> None:
    """Two threads create tokens while the developer reports. Once the bot has answered, none of the tokens works."""
    survived: dict[int, int] = {}
    for number in range(ROUNDS):
        phone = new_phone("Ada", language_code="en")
        mine = Browser(service)
        mine.invited(invitation(service, f"robbed{number}@example.com"), phone)
        assert mine.submit(CONFIRM).status_code == 303
        mine.client.close()
        stolen = logged_in(client, phone)
        said(phone, "/sessions")
        minters = [Minter(service.base_url, stolen) for _ in range(MINTERS)]
        for minter in minters:
            minter.start()
        for minter in minters:
            assert minter.is_running.wait(60)

        phone.tap(NEWEST)
        expected = TEXTS.reported_developer.format(project=isolated_name(TERMINAL.project_name), unblock="Unblock")
        assert newest(phone)["text"] == expected
        for minter in minters:
            minter.must_stop.set()
        for minter in minters:
            minter.join(60)
            assert not minter.is_alive()
        survived[number] = sum(len(minter.survivors()) for minter in minters)
        assert client.get(ME, headers={"Authorization": f"Bearer {stolen}"}).status_code == 401
        for minter in minters:
            minter.client.close()
    assert survived == dict.fromkeys(range(ROUNDS), 0)
