"""The audit log in the console: every kind of entry in words, its owner, and its pages."""

import dataclasses
import itertools
from typing import cast, get_args

from tests.console.browsing import Shown, text_of
from tests.console.conftest import Installation, Visitor
from tests.sign_ins import by_console

from taproof.console.audit import PAGE_SIZE, PHRASES
from taproof.contract.audit import AuditAction, Via
from taproof.core.accounts import Actor, AuditEntry, Developer
from taproof.core.entropy import system_entropy
from taproof.core.projects import ProjectChanges
from taproof.service.audit import audit_entry

AUDIT = "/console/audit"


def test_every_action_has_words() -> None:
    """Every action has its own phrase in plain words."""
    assert set(PHRASES) == set(get_args(AuditAction))
    assert len(set(PHRASES.values())) == len(PHRASES)
    assert not [phrase for phrase in PHRASES.values() if "_" in phrase or "." in phrase]


async def test_every_action_can_be_shown(console: Installation, visitor: Visitor) -> None:
    """Every action, by every means, is shown with its phrase and its means."""
    token = await console.services.developers.create_access_token(visitor.actor, "old laptop")
    session = await by_console(console.storage, visitor.developer, console.clock.now)
    ids = {"access_token": token.token.id, "console": session.via_id}
    for action, via in itertools.product(get_args(AuditAction), get_args(Via)):
        actor = Actor(visitor.developer, via, ids.get(via, ""), "192.0.2.7")
        entry = audit_entry(actor, action, console.clock.now, system_entropy, subject="made-up")
        await write(console, entry)
    means = {
        "Access token old laptop",
        "Console",
        "Login from a terminal",
        "Invitation",
        "Command line",
        "Taproof itself",
    }
    seen = {(row[2], means_of(row[4])) for shown in await every_page(visitor) for row in shown.rows()}
    assert len(means) == len(get_args(Via))
    assert seen >= set(itertools.product(PHRASES.values(), means))


def means_of(cell: str) -> str:
    """Return a cell without the address at its end."""
    return cell.rpartition(" from ")[0] or cell


async def write(console: Installation, entry: AuditEntry) -> None:
    """Add an entry with a change to the log, because every entry has one: here, an unknown developer."""
    email = f"{entry.id}@example.com"
    assert await console.storage.developers.create_developer(Developer(entry.id, email, "free", 0), entry=entry)


async def every_page(visitor: Visitor) -> list[Shown]:
    """Read all pages of the log."""
    pages = [await visitor.get(AUDIT)]
    while (older := next_page(pages[-1])) is not None:
        pages.append(await visitor.get(older))
    return pages


def next_page(shown: Shown) -> str | None:
    links = shown.all(".//nav[@aria-label='Pages']/a[@rel='next']")
    return links[0].get("href") if links else None


async def test_an_entry_shows_the_whole_action(console: Installation, visitor: Visitor) -> None:
    """An action in the console is logged with the developer, the action, its subject, the means and the address."""
    console.clock.now += 60_000
    await visitor.submit("/console/tokens", "/console/tokens", name="<b>laptop</b>", expiry="never")
    shown = await visitor.get(AUDIT)
    newest = shown.rows()[0]
    assert newest[0] == "now"
    assert shown.all(".//tbody//time")[0].get("title") == "2026-11-18 11:07:40 UTC"
    assert newest[1:3] == ["ada@example.com", "Created an access token"]
    assert newest[3].startswith("<b>laptop</b> name: <b>laptop</b> preview: tap_")
    assert newest[4] == "Console from 127.0.0.1"
    [link] = (await visitor.get(AUDIT)).all(".//tbody/tr[1]//a")
    assert link.get("href") == "/console/tokens"


async def test_the_subject(console: Installation, visitor: Visitor) -> None:
    """The subject is named and linked while it exists; of a deleted project, the id and the name remain."""
    kept, _ = await visitor.create_project("Kept")
    gone, _ = await visitor.create_project("Gone")
    await console.services.projects.delete_project(visitor.actor, gone.id)
    shown = await visitor.get(AUDIT)
    subjects = [(row[2], row[3].partition(" ")[0]) for row in shown.rows() if "project" in row[2]]
    assert sorted(subjects) == sorted(
        [("Created a project", "Kept"), ("Created a project", gone.id), ("Deleted a project", gone.id)]
    )
    assert "Gone" in shown.text
    linked = [link.get("href") for link in shown.all(".//tbody//a")]
    assert f"/console/projects/{kept.id}" in linked
    assert f"/console/projects/{gone.id}" not in linked


async def test_by_access_token(console: Installation, visitor: Visitor) -> None:
    """An action through the API is shown with the name of the access token, or with its id after its revocation."""
    token = await console.services.developers.create_access_token(visitor.actor, "deploy script")
    actor = Actor(visitor.developer, "access_token", token.token.id, "198.51.100.9", token.token.grant)
    console.clock.now += 1
    await console.services.projects.create_project(actor, ProjectChanges(name="Shop"))
    [row] = [row for row in (await visitor.get(AUDIT)).rows() if row[2] == "Created a project"]
    assert row[4] == "Access token deploy script from 198.51.100.9"
    await console.services.developers.delete_access_token(visitor.actor, token.token.id)
    [row] = [row for row in (await visitor.get(AUDIT)).rows() if row[2] == "Created a project"]
    assert row[4] == f"Access token {token.token.id} from 198.51.100.9"


async def test_paging(console: Installation, visitor: Visitor) -> None:
    """The pages lead from the newest entry to the oldest, each entry once, and back to the newest."""
    for number in range(PAGE_SIZE + 3):
        console.clock.now += 1
        await visitor.create_project(f"Project {number}")
    pages = await every_page(visitor)
    names = [row[3].partition(" name: ")[0] for shown in pages for row in shown.rows() if row[2] == "Created a project"]
    assert names == [f"Project {number}" for number in reversed(range(PAGE_SIZE + 3))]
    assert [link.get("href") for link in pages[-1].all(".//nav[@aria-label='Pages']/a")] == [AUDIT]


async def test_details_in_words(console: Installation, visitor: Visitor) -> None:
    """Values are shown as words, lists as JSON, a user agent as a browser name; missing values are left out."""
    details = {
        "is_owner": True,
        "plan": "pro",
        "left": None,
        "hours": 24,
        "more": ["a", 1],
        "off": False,
        "url": "",
        "origins": [],
    }
    details["user_agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"
    actor = await by_console(console.storage, visitor.developer, console.clock.now)
    now = console.clock.now + 1
    await write(console, audit_entry(actor, "project.updated", now, system_entropy, subject="made-up", details=details))
    shown = await visitor.get(AUDIT)
    [row] = shown.all(".//tbody/tr[1]")
    terms = [text_of(term) for term in row.findall(".//td[3]/div[@class='hint']")]
    assert terms == [
        "is owner: yes",
        "plan: pro",
        "hours: 24",
        "more: a, 1",
        "off: no",
        "url: none",
        "origins: none",
        "browser: Firefox on Linux",
    ]


async def test_entries_of_a_newer_release_are_shown(console: Installation, visitor: Visitor) -> None:
    """During a rolling deploy, values that another node wrote and this one does not know are shown as they are."""
    actor = visitor.actor
    entry = audit_entry(actor, "project.created", console.clock.now, system_entropy, subject="new_1")
    newer = dataclasses.replace(entry, action=cast("AuditAction", "moon.visited"), via=cast("Via", "rocket"))
    await console.storage.audit.add_audit_entry(newer)
    answer = await visitor.client.get("/console/audit")
    assert answer.status_code == 200
    assert "moon.visited" in answer.text
    assert "rocket" in answer.text
