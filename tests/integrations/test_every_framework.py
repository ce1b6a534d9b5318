"""The behaviour of every integration, on the real framework behind real HTTP: sign-ins, refusals, and sessions."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from secrets import token_urlsafe

import httpx
import pytest
from tests.integrations.conftest import (
    JSON,
    OTHER_PROJECT,
    OWN,
    SECRET,
    SIGN_IN,
    SIGN_OUT,
    Site,
    StartSite,
    make_proof,
    whoami,
)


def cookies_of(browser: httpx.Client) -> dict[str, str]:
    return dict(browser.cookies.items())


def with_cookies(site: Site, cookies: dict[str, str]) -> httpx.Client:
    browser = site.browser()
    browser.cookies.update(cookies)
    return browser


def test_a_proof_signs_in(site: Site, browser: httpx.Client) -> None:
    """A valid proof is answered with the redirect.

    The session then holds the identity, but neither the proof nor its token.
    """
    token = token_urlsafe(32)
    proof = make_proof(session_token=token)
    answer = site.sign_in(browser, proof)
    assert (answer.status_code, answer.json()) == (200, {"location": "/"})
    assert answer.headers["Cache-Control"] == "no-store"
    session = whoami(browser)
    assert session["taproof"].pop("signed_in_at") > 1_700_000_000
    # Of the session token only its SHA-256, for a proof whose answer was lost on its way.
    assert session["taproof"].pop("used_proof") == hashlib.sha256(token.encode()).hexdigest()
    assert session["taproof"] == {
        "messenger_id": "1001",
        "messenger_name": "Ada <b>Lovelace</b> 🦊",
        "messenger_username": "ada",
    }
    kept = json.dumps(session)
    assert token not in kept
    assert proof.rpartition(".")[2] not in kept
    assert browser.get("/members").text == "Ada <b>Lovelace</b> 🦊"


def test_the_session_holds_the_phone_number(site: Site, browser: httpx.Client) -> None:
    """A collected number is in the session; the next sign-in without one removes it."""
    site.sign_in(browser, make_proof(messenger_phone="+4915123456789"))
    assert whoami(browser)["taproof"]["messenger_phone"] == "+4915123456789"
    site.sign_in(browser, make_proof())
    assert "messenger_phone" not in whoami(browser)["taproof"]


def test_a_proof_signs_in_once(site: Site, browser: httpx.Client) -> None:
    """A repeated proof from any client, signed in or not, is answered with 401 and starts no session."""
    proof = make_proof()
    assert site.sign_in(browser, proof).status_code == 200
    with site.browser() as other:
        answer = site.sign_in(other, proof)
        assert answer.status_code == 401
        assert "used before" in answer.json()["error"]
        assert whoami(other) is None
        site.sign_in(other, make_proof())
        assert site.sign_in(other, proof).status_code == 401


def test_an_answer_that_was_lost_is_given_again(site: Site, browser: httpx.Client) -> None:
    """The button repeats a proof whose answer was lost, and the signed-in user keeps the session."""
    proof, token = make_proof(), token_urlsafe(32)
    site.sign_in(browser, make_proof(session_token=token))
    site.sign_in(browser, proof)
    session, cookies = whoami(browser), cookies_of(browser)
    answer = site.sign_in(browser, proof, f"{SIGN_IN}?next=/members")
    assert (answer.status_code, answer.json()) == (200, {"location": "/members"})
    assert whoami(browser) == session
    with with_cookies(site, cookies) as as_before:
        assert whoami(as_before) == session
    # The proof of the sign-in before: another session's, so it is used and no more.
    assert site.sign_in(browser, make_proof(session_token=token)).status_code == 401
    browser.post(SIGN_OUT, content="{}", headers=OWN)
    assert site.sign_in(browser, proof).status_code == 401


def test_a_proof_sent_many_times_at_once_signs_in_once(site: Site) -> None:
    """Of sixteen simultaneous requests with one proof, exactly one signs in."""
    proof = make_proof()

    def send(_: int) -> int:
        with site.browser() as browser:
            return site.sign_in(browser, proof).status_code

    with ThreadPoolExecutor(16) as pool:
        assert sorted(pool.map(send, range(16))) == [200] + [401] * 15


def test_a_body_that_was_read_before_is_not_lost(site: Site, browser: httpx.Client) -> None:
    """A middleware that reads every request first, such as a log, does not break the sign-in."""
    assert site.sign_in(browser, make_proof(), f"{SIGN_IN}?read-first=1").status_code == 200


def test_a_second_process_takes_no_proof_again(site: Site, browser: httpx.Client, start: StartSite) -> None:
    """All processes of the application share one guard."""
    proof = make_proof()
    assert site.sign_in(browser, proof).status_code == 200
    other = start(site.name, place=site.place)
    with other.browser() as elsewhere:
        assert other.sign_in(elsewhere, proof).status_code == 401
        assert other.sign_in(elsewhere, make_proof()).status_code == 200


@pytest.mark.parametrize(
    ("proof", "says"),
    [
        pytest.param(make_proof(age=301), "expired", id="expired"),
        pytest.param(make_proof(project_id=OTHER_PROJECT), "a different project", id="of another project"),
        pytest.param(make_proof()[:-8] + "AAAAAAAA", "signature", id="altered"),
        pytest.param("not a proof", "not a JWT", id="garbage"),
    ],
)
def test_a_bad_proof_is_401(site: Site, browser: httpx.Client, proof: str, says: str) -> None:
    """Each refusal gives its reason, starts no session, and reveals nothing."""
    answer = site.sign_in(browser, proof)
    assert answer.status_code == 401
    assert set(answer.json()) == {"error"}
    assert says in answer.json()["error"]
    assert SECRET not in answer.text
    assert cookies_of(browser) == {}
    assert whoami(browser) is None


def test_what_another_site_sends_is_refused(site: Site, browser: httpx.Client) -> None:
    """No other site can sign its visitors in or out, and the proof is not used. test_endpoint.py has more."""
    proof = make_proof()
    cases = [
        {"Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "same-origin"},
        JSON,
        JSON | {"Origin": "https://evil.example"},
        JSON | {"Sec-Fetch-Site": ""},
        JSON | {"Sec-Fetch-Site": "cross-site", "Origin": site.base_url},
    ]
    for headers in cases:
        answer = browser.post(SIGN_IN, content=json.dumps({"proof": proof}), headers=headers)
        assert (answer.status_code, set(answer.json())) == (403, {"error"}), headers
    assert site.sign_in(browser, proof).status_code == 200
    for headers in cases:
        assert browser.post(SIGN_OUT, content="{}", headers=headers).status_code == 403, headers
    assert whoami(browser) is not None


def test_a_header_that_comes_twice_is_refused(site: Site, browser: httpx.Client) -> None:
    """A proxy may use one value and the application the other, so both are refused."""
    cases = [
        [*JSON.items(), ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")],
        [*JSON.items(), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-origin")],
        [*JSON.items(), ("Origin", site.base_url), ("Origin", "https://evil.example")],
        [*JSON.items(), ("Origin", "https://evil.example"), ("Origin", site.base_url)],
        [("Content-Type", "text/plain"), *JSON.items(), ("Sec-Fetch-Site", "same-origin")],
    ]
    for headers in cases:
        answer = browser.post(SIGN_IN, content=json.dumps({"proof": make_proof()}), headers=headers)
        assert answer.status_code == 403, headers
    assert whoami(browser) is None


# Where the interface is WSGI, Granian hands on the first of them only.
@pytest.mark.parametrize("site", ["starlette", "fastapi"], indirect=True)
def test_a_content_type_that_comes_twice_is_refused(site: Site, browser: httpx.Client) -> None:
    """The request is refused even if the first value is the right one."""
    for first in ("application/json", "application/json; charset=utf-8"):
        headers = [("Content-Type", first), ("Content-Type", "text/plain"), ("Sec-Fetch-Site", "same-origin")]
        answer = browser.post(SIGN_IN, content=json.dumps({"proof": make_proof()}), headers=headers)
        assert answer.status_code == 403


def test_an_old_browser_is_told_by_its_origin(site: Site, browser: httpx.Client) -> None:
    """Without Sec-Fetch-Site, as on plain HTTP, the application's own Origin is enough."""
    answer = browser.post(SIGN_IN, json={"proof": make_proof()}, headers={"Origin": site.base_url})
    assert answer.status_code == 200
    port = site.base_url.rpartition(":")[2]
    for other in (f"https://127.0.0.1:{port}", "http://127.0.0.1", f"http://localhost:{port}", f"{site.base_url}/"):
        answer = browser.post(SIGN_IN, json={"proof": make_proof()}, headers={"Origin": other})
        assert answer.status_code == 403, other


def test_hostile_bodies(site: Site, browser: httpx.Client) -> None:
    """Every body is answered with one sentence, and the application continues. test_endpoint.py has more."""
    cases = [(b"", 400), (b"[" * 30_000, 400), (b"\xff\xfe", 400), (b'{"proof": "' + b"a" * 1_000_000 + b'"}', 413)]
    for body, status in cases:
        answer = browser.post(SIGN_IN, content=body, headers=OWN)
        assert (answer.status_code, set(answer.json())) == (status, {"error"}), body[:20]
    assert whoami(browser) is None


def test_a_planted_session_is_not_taken_over(site: Site, browser: httpx.Client) -> None:
    """Session fixation: a sign-in starts a new session with nothing of the old, and the old cookie is not signed in."""
    browser.get("/plant")
    before = cookies_of(browser)
    assert browser.get("/anybody").json()["session"] == {"planted": "yes"}
    assert site.sign_in(browser, make_proof()).status_code == 200
    assert cookies_of(browser) != before
    assert "planted" not in whoami(browser)
    with with_cookies(site, before) as attacker:
        assert whoami(attacker) is None


def test_a_second_sign_in_takes_the_place_of_the_first(site: Site, browser: httpx.Client) -> None:
    """After a sign-in with another account in the same browser, the session is new and belongs to that account."""
    site.sign_in(browser, make_proof("1001"))
    before = cookies_of(browser)
    site.sign_in(browser, make_proof("2002"))
    assert whoami(browser)["taproof"]["messenger_id"] == "2002"
    assert cookies_of(browser) != before


def test_a_bad_proof_leaves_the_session_as_it_is(site: Site, browser: httpx.Client) -> None:
    """A refused proof signs nobody out."""
    site.sign_in(browser, make_proof())
    assert site.sign_in(browser, make_proof(age=1_000)).status_code == 401
    assert whoami(browser) is not None


def test_sign_out(site: Site, browser: httpx.Client) -> None:
    """A sign-out ends the session and names the next page; a repeated one gives the same answer."""
    site.sign_in(browser, make_proof())
    for _ in range(2):
        answer = browser.post(SIGN_OUT, content="{}", headers=OWN)
        assert (answer.status_code, answer.json()) == (200, {"location": "/"})
        assert whoami(browser) is None
        assert browser.get("/anybody").json()["session"] == {}


def test_get_does_nothing(site: Site, browser: httpx.Client) -> None:
    """A link or an image cannot sign anybody in or out."""
    site.sign_in(browser, make_proof())
    assert browser.get(SIGN_IN, headers=OWN).status_code == 405
    assert browser.get(SIGN_OUT, headers=OWN).status_code == 405
    assert whoami(browser) is not None


def test_the_way_back_to_the_page_that_was_asked_for(site: Site, browser: httpx.Client) -> None:
    """A members' page redirects to the page with the button, whose sign-in leads back."""
    asked = browser.get("/members?tab=a%26b")
    assert asked.status_code in {302, 303}
    home = httpx.URL(asked.headers["Location"])
    assert (home.path, home.params["next"]) == ("/", "/members?tab=a%26b")
    answer = site.sign_in(browser, make_proof(), f"{SIGN_IN}?{home.query.decode()}")
    assert answer.json() == {"location": "/members?tab=a%26b"}
    assert browser.get("/whoami").status_code == 200


def test_a_way_out_of_the_site_is_not_taken(site: Site, browser: httpx.Client) -> None:
    """An open redirect would send a user who has just signed in to a foreign page. test_endpoint.py tries many more."""
    for way in ("https%3A%2F%2Fevil.example", "%2F%2Fevil.example", "%2F%5Cevil.example", "%2F%09%2Fevil.example"):
        assert site.sign_in(browser, make_proof(), f"{SIGN_IN}?next={way}").json() == {"location": "/"}


def test_nothing_secret_is_printed(site: Site, browser: httpx.Client) -> None:
    """The application's output contains neither a proof nor the secret."""
    proof = make_proof()
    site.sign_in(browser, proof)
    site.sign_in(browser, proof)
    assert proof not in site.output()
    assert SECRET not in site.output()
