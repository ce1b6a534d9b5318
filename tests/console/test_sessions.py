"""The pages of sessions: the list with its filters and pages, and one session with its steps."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams
from tests.console.browsing import Shown
from tests.console.conftest import ADA, GRACE, Installation, Visitor

from taproof.console.sessions import SessionFilters, duration
from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_session_id, new_session_token
from taproof.core.projects import Project
from taproof.service.webhooks import WebhookResponse

LIST = "/console/sessions"
HOOK = "https://example.com/hook"


def ids(shown: Shown) -> list[str]:
    return [row.get("data-session", "") for row in shown.all(".//tbody[@id='session-rows']/tr[@data-session]")]


def typed_into(shown: Shown) -> dict[str, str]:
    """Return the values in the form of the filters."""
    form = shown.one(".//form[@aria-label='Filters']")
    fields = {control.get("name", ""): control.get("value", "") for control in form.iter("input")}
    chosen = {
        select.get("name", ""): option.get("value", "")
        for select in form.iter("select")
        for option in select
        if option.get("selected") is not None
    }
    return {name: value for name, value in (fields | chosen).items() if value}


def query_of(link: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}


async def newest(visitor: Visitor) -> Shown:
    """Return the page of the newest session."""
    return await visitor.get(f"{LIST}/{(await visitor.sessions())[0].id}")


async def send_due(console: Installation) -> None:
    """Attempt each due event, as the webhook sender does; the receiver answers `console.receiver.answer`."""
    for delivery in await console.webhooks.claim_deliveries(10):
        await console.webhooks.finish_attempt(delivery, console.receiver.answer)


async def test_the_list_says_when_where_who_and_what(visitor: Visitor, console: Installation, project: Project) -> None:
    """The list is newest first; each row has the project, status, user and outcome in words, and a link."""
    blog, _ = await visitor.create_project("Blog")
    await visitor.start_session(project.id)
    console.clock.now += 11 * MINUTE
    await visitor.confirm(project.id, GRACE)
    console.clock.now += SECOND
    await console.messenger.cancel((await visitor.start_session(blog.id)).deeplink)
    console.clock.now += SECOND
    used = await visitor.start_session(project.id)
    await console.messenger.confirm(used.deeplink)
    await console.messenger.signin.verify_session(project.id, used.session_token, public=True)
    console.clock.now += SECOND
    await visitor.start_session(blog.id)
    shown = await visitor.get(LIST)
    assert [row[1:] for row in shown.rows()] == [
        ["Blog", "Pending", "", "Waiting for the user to open the link."],
        ["Shop", "Used", "Ada Lovelace @ada 1001", "Your application received the result."],
        ["Blog", "Cancelled", "", "Cancelled by the user."],
        ["Shop", "Confirmed", "Grace 1002", "Confirmed, but not used yet."],
        ["Shop", "Expired", "", "The link was never opened."],
    ]
    assert [row[0] for row in shown.rows()] == ["now", "now", "now", "now", "11 min ago"]
    times = [time.get("datetime", "") for time in shown.all(".//tbody//time")]
    assert times == sorted(times, reverse=True)
    links = [link.get("href") for link in shown.all(".//tbody//th/a")]
    assert links == [f"{LIST}/{each}" for each in [each.id for each in await visitor.sessions()]]
    assert used.session_token not in shown.html


async def test_reports_of_users_are_marked(visitor: Visitor, console: Installation, project: Project) -> None:
    """The list and the page describe a report, and what it means before and after the result was read."""
    signin = console.messenger.signin
    unread, read = [await visitor.start_session(project.id) for _ in range(2)]
    for started in (unread, read):
        await console.messenger.confirm(started.deeplink)
    await signin.verify_session(project.id, read.session_token, public=True)
    console.clock.now += SECOND
    for started, said in ((unread, "before the sign-in was used"), (read, "end the session that your application")):
        await signin.report_session(started.session_token, ADA.messenger_id)
        found = await console.services.session_reader.read_session_by_token(visitor.developer, started.session_token)
        page = await visitor.get(f"{LIST}/{found.id}")
        assert said in page.text
        assert page.texts(".//ol[@id='steps']/li/p/strong")[-1] == "Reported"
    rows = (await visitor.get(LIST)).rows()
    assert {tuple(row[2::2]) for row in rows} == {("Reported", "The user reported this sign-in: it was not them.")}


async def test_each_filter_and_all_together(visitor: Visitor, console: Installation) -> None:
    """Project, status, time and user each select the matching sessions, and the form keeps the input."""
    shop, _ = await visitor.create_project("Shop")
    blog, _ = await visitor.create_project("Blog")
    console.clock.now = 1_795_003_200_000  # 2026-11-18T12:00:00Z
    for project in (shop, blog):
        for identity in (ADA, GRACE):
            await visitor.confirm(project.id, identity)
            console.clock.now += HOUR
    await visitor.start_session(shop.id)
    pending, blog_grace, blog_ada, shop_grace, shop_ada = [each.id for each in await visitor.sessions()]

    async def found(**typed: str) -> list[str]:
        shown = await visitor.get(LIST, **typed)
        assert shown.status == 200, shown.text
        assert typed_into(shown) == typed
        return ids(shown)

    assert await found() == [pending, blog_grace, blog_ada, shop_grace, shop_ada]
    assert await found(project_id=blog.id) == [blog_grace, blog_ada]
    assert await found(status="pending") == [pending]
    assert await found(status="confirmed") == [blog_grace, blog_ada, shop_grace, shop_ada]
    assert await found(messenger_id="1001") == [blog_ada, shop_ada]
    assert await found(since="2026-11-18T14:00") == [pending, blog_grace, blog_ada]
    assert await found(until="2026-11-18T14:00:00") == [shop_grace, shop_ada]
    assert await found(since="2026-11-18T13:00:00.001", until="2026-11-18T14:00:00.001") == [blog_ada]
    every = {"project_id": blog.id, "status": "confirmed", "messenger_id": "1002"}
    assert await found(**every, since="2026-11-18 15:00", until="2026-11-18 15:01") == [blog_grace]
    assert await found(**every, since="2026-11-18 15:01") == []


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ({"status": "lost"}, "Choose a status"),
        ({"since": "yesterday"}, "From must be"),
        ({"until": "2026-02-30T00:00"}, "Until must be"),
        ({"until": "2026-11-20T00:00Z"}, "Until must be"),
        ({"since": "2026-11-20T00:00", "until": "2026-11-20T00:00"}, "From must be earlier than Until."),
        ({"messenger_id": "@ada"}, "messenger_id must be"),
        ({"messenger_id": "١٢٣"}, "messenger_id must be"),
        ({"cursor": "x"}, "cursor must be"),
        ({"project_id": "shop"}, "project_id must be"),
    ],
)
async def test_wrong_filters_stay_in_the_form(visitor: Visitor, typed: dict[str, str], named: str) -> None:
    """Wrong filters get 400, a sentence and the input again; there is no list and no stream."""
    await visitor.create_project()
    kept = {"messenger_id": "77"} | typed
    shown = await visitor.get(LIST, **kept)
    assert shown.status == 400
    assert shown.alert.startswith(named)
    fields = {control.get("name"): control.get("value") for control in shown.all(".//form//input")}
    assert fields["messenger_id"] == kept["messenger_id"]
    for name in {"since", "until"} & typed.keys():
        assert fields[name] == typed[name]
    assert not shown.all(".//main//table")
    assert "data-live" not in shown.html


@given(st.dictionaries(st.sampled_from(["project_id", "status", "since", "until", "messenger_id"]), st.text()))
def test_an_address_holds_its_filters(typed: dict[str, str]) -> None:
    """Any input leads to the same filters again: nothing ends a value, or the address, early."""
    filters = SessionFilters.from_query(QueryParams(typed))
    address = filters.address(cursor="c&c")
    assert address.isascii()
    assert address.isprintable()
    again = QueryParams(urlsplit(address).query)
    assert SessionFilters.from_query(again) == filters
    assert again["cursor"] == "c&c"


async def test_pages_have_each_session_once_and_keep_the_filters(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """The link "Older" leads through all matching sessions in order, even if new ones arrive meanwhile."""
    for number in range(120):
        started = await visitor.start_session(project.id)
        if number % 10:
            await console.messenger.confirm(started.deeplink)
        console.clock.now += 1
    every = [each.id for each in await visitor.sessions()]
    expected = [each.id for each in await visitor.sessions("confirmed")]
    assert 100 < len(expected) < len(every)
    shown, seen, places = await visitor.get(LIST, status="confirmed", project_id=project.id), [], 0
    assert shown.texts(".//a[@href='/console/sessions?project_id=" + project.id + "&status=confirmed']") == ["Reload"]
    while True:
        seen += ids(shown)
        assert ("data-live" in shown.html) == (places == 0)
        older = shown.one(".//a[@id='older']")
        if older.get("href") is None:
            assert older.get("hidden") is not None
            break
        await visitor.confirm(project.id)
        link = older.get("href", "")
        assert query_of(link).keys() == {"status", "project_id", "cursor"}
        shown, places = await visitor.get(link), places + 1
        newest_link = f"{LIST}?project_id={project.id}&status=confirmed"
        assert set(shown.texts(f".//main//a[@href='{newest_link}']")) == {"Newest"}
    assert seen == expected


async def look_up(visitor: Visitor, sought: str) -> Shown:
    """Send the form that opens one session."""
    form = (await visitor.get(LIST)).one(".//form[@aria-label='One session']")
    assert (form.get("method"), form.get("action")) == ("post", LIST)
    (field,) = form.iter("input")
    return await visitor.post(LIST, {field.get("name", ""): sought})


async def test_an_id_or_a_token_leads_to_the_page_of_its_session(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """An id or a token is accepted with white space around it; the token is in no address and on no page."""
    started = await visitor.start_session(project.id)
    (session_id,) = [each.id for each in await visitor.sessions()]
    for sought in (session_id, f" {session_id} ", started.session_token, f"\t{started.session_token}\n"):
        answer = await look_up(visitor, sought)
        assert answer.location == f"{LIST}/{session_id}"
        assert started.session_token not in str(answer.response.headers)
        shown = await visitor.follow(answer)
        assert (shown.status, shown.heading) == (200, "Session")
        assert started.session_token not in shown.html
    assert (await visitor.get(f"{LIST}/sess_x")).status == 404


async def test_all_misses_get_the_same_answer(
    console: Installation, visitor: Visitor, stranger: Visitor, project: Project
) -> None:
    """A foreign, unknown or malformed id or token gets one answer, which does not repeat it."""
    await stranger.create_project("Mine")
    started = await visitor.start_session(project.id)
    (session_id,) = [each.id for each in await visitor.sessions()]
    unknown_id = new_session_id(console.clock.now, system_entropy)
    unknown_token = new_session_token(console.clock.now, system_entropy)
    told = set()
    for sought in (session_id, started.session_token, unknown_id, unknown_token, "../tokens", "", "sess_x"):
        shown = await look_up(stranger, sought)
        assert shown.status == 404
        assert shown.alert.startswith("You have no session with that id or token.")
        assert not shown.all(".//main//table")
        told.add(shown.html)
    assert len(told) == 1


# ---- one session


async def test_the_fields(visitor: Visitor, console: Installation, project: Project) -> None:
    """A session's page has the fields of the API's session under the same names, without the token."""
    started = await visitor.start_session(project.id)
    await console.messenger.confirm(started.deeplink)
    shown = await newest(visitor)
    fields = dict(
        zip(shown.texts(".//dl[@class='facts']/div/dt"), shown.texts(".//dl[@class='facts']/div/dd"), strict=True)
    )
    (session_id,) = [each.id for each in await visitor.sessions()]
    assert fields == {
        "id": session_id,
        "project_id": project.id,
        "project_name": "Shop",
        "messenger_id": "1001",
        "messenger_name": "Ada Lovelace",
        "messenger_username": "ada",
        "status": "confirmed",
        "created_at": "2026-11-18 11:06:40 UTC",
        "confirmed_at": "2026-11-18 11:06:40 UTC",
        "reported_at": "–",
    }
    assert started.session_token not in shown.html


async def test_the_steps_and_how_long_each_took(visitor: Visitor, console: Installation, project: Project) -> None:
    """Each step has its time, the time since the previous step, and a plain sentence."""
    started = await visitor.start_session(project.id)
    console.clock.now += 2_400
    await console.messenger.open(started.deeplink)
    console.clock.now += 65 * SECOND
    await console.messenger.confirm(started.deeplink)
    console.clock.now += 99
    await console.messenger.signin.verify_session(project.id, started.session_token, public=True)
    shown = await newest(visitor)
    assert shown.texts(".//ol[@id='steps']/li/p[1]") == [
        "Requested 2026-11-18 11:06:40 UTC",
        "Opened 2026-11-18 11:06:42 UTC 2.4 s later",
        "Confirmed 2026-11-18 11:07:47 UTC 1 min 5 s later",
        "Used 2026-11-18 11:07:47 UTC immediately",
    ]
    assert shown.texts(".//ol[@id='steps']/li/p[2]")[2] == "The user tapped Confirm."
    assert shown.texts(".//p[@class='lead']") == ["Used Your application received the result."]


@pytest.mark.parametrize(
    ("opened", "decided", "waited", "said"),
    [
        (False, "", 0, "Pending Waiting for the user to open the link."),
        (True, "", 0, "Pending Opened, waiting for the user’s decision. The user has tapped neither"),
        (False, "", 11 * MINUTE, "Expired The link was never opened. Check that"),
        (True, "", 11 * MINUTE, "Expired Opened, but not answered."),
        (True, "cancelled", 0, "Cancelled Cancelled by the user."),
        (True, "confirmed", 0, "Confirmed Confirmed, but not used yet."),
        (True, "confirmed", DAY // 24, "Confirmed Confirmed, but never used"),
    ],
)
async def test_plain_words_for_what_happened(
    visitor: Visitor, console: Installation, project: Project, *, opened: bool, decided: str, waited: int, said: str
) -> None:
    """The sentence at the top says why a sign-in failed and what to do."""
    started = await visitor.start_session(project.id)
    if decided == "confirmed":
        await console.messenger.confirm(started.deeplink)
    elif decided == "cancelled":
        await console.messenger.cancel(started.deeplink)
    elif opened:
        await console.messenger.open(started.deeplink)
    console.clock.now += waited
    shown = await newest(visitor)
    assert shown.texts(".//p[@class='lead']")[0].startswith(said)
    # Only where something may still come does the page ask again, and offer to stop that.
    is_moving = waited == 0 and decided != "cancelled"
    assert ("Stop updating" in shown.html) == is_moving
    assert ("None: the user did not decide." in shown.text) == said.startswith("Expired")
    assert ("data-moving" in shown.html) == is_moving
    assert bool(shown.all(".//script[@type='module']")[1:]) == is_moving


@pytest.mark.parametrize("is_right", [True, False])
async def test_the_steps_mention_the_match_code(
    visitor: Visitor, console: Installation, project: Project, *, is_right: bool
) -> None:
    """The steps mention the match code, even if the project has turned match codes off since."""
    await visitor.change(project, match_code=True)
    started = await visitor.start_session(project.id)
    seen = await console.messenger.open(started.deeplink)
    await visitor.change(project, match_code=False)
    assert "neither chosen a number nor tapped Cancel" in (await newest(visitor)).text
    place = next(place for place, code in enumerate(seen.choices) if (code == started.match_code) == is_right)
    await console.messenger.signin.confirm_session(started.session_token, ADA, choice=place)
    step = (await newest(visitor)).texts(".//ol[@id='steps']/li/p[2]")[2]
    assert step == (
        "The user chose the number that your page showed."
        if is_right
        else "The user tapped Cancel, or chose a number that your page did not show."
    )


async def test_the_webhook_attempts_of_a_session(visitor: Visitor, console: Installation) -> None:
    """Each attempt is shown with its result and a link to its delivery; those of other sessions are not."""
    shop, _ = await visitor.create_project(webhook_url=HOOK)
    other = await visitor.start_session(shop.id)
    await console.messenger.confirm(other.deeplink)
    console.clock.now += 1
    started = await visitor.start_session(shop.id)
    shown = await newest(visitor)
    assert "A webhook is sent when the user confirms or cancels" in shown.text
    await console.messenger.confirm(started.deeplink)
    shown = await newest(visitor)
    assert "auth.confirmed Waiting The first attempt is at" in shown.text
    await console.messenger.signin.verify_session(shop.id, started.session_token, public=True)
    # The session is at its end, its webhook is not.
    assert "Stop updating" in (await newest(visitor)).html
    assert not shown.all(".//table[@id='attempts']")
    console.receiver.answer = WebhookResponse(5, 500, body=b"oh no")
    await send_due(console)
    console.clock.now += MINUTE
    console.receiver.answer = WebhookResponse(5, 204)
    await send_due(console)
    shown = await newest(visitor)
    failed, taken = shown.rows(".//table[@id='attempts']")
    assert (failed[0], taken[0]) == ("Attempt 1", "Attempt 2")
    assert (failed[2], taken[2]) == ("Failed HTTP 500", "Delivered HTTP 204")
    (session_id, _) = [each.id for each in await visitor.sessions()]
    session = await console.services.session_reader.read_session(visitor.developer, session_id)
    (delivery,) = await console.services.deliveries.find_deliveries(visitor.developer, session)
    links = {link.get("href") for link in shown.all(".//a") if "deliveries" in link.get("href", "")}
    assert links == {f"/console/deliveries/{delivery.record.event_id}"}
    assert "The receiver accepted it" in shown.text
    assert "Stop updating" not in shown.html


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (100, "0.1 s"),
        (420, "0.4 s"),
        (12_900, "12 s"),
        (598_000, "9 min 58 s"),
        (HOUR, "1 h 0 min"),
        (DAY + 61 * MINUTE, "25 h 1 min"),
    ],
)
def test_durations_in_two_units(milliseconds: int, text: str) -> None:
    """Short durations are exact to a tenth of a second, long ones to the minute; no unit starts a line."""
    assert duration(milliseconds).replace("\N{NO-BREAK SPACE}", " ") == text
    assert not re.search(r"[0-9] ", duration(milliseconds))
