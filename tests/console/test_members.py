"""The members page of a project, and joining a project with a link."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from tests.console.browsing import Browsing, Shown
from tests.console.conftest import ADA, Installation, Visitor

from taproof.contract.member import Role
from taproof.core.projects import Project
from taproof.core.roles import ACTIONS, PERMITTED, ROLES

JOIN = "/console/join"
ACCEPT = "/console/join/accept"


async def invited(owner: Visitor, project: Project, role: Role = "developer") -> str:
    """Create an invitation on the page and return the code of its link."""
    members = f"/console/projects/{project.id}/members"
    shown = await owner.follow(await owner.submit(members, f"{members}/invitations", role=role))
    [link] = shown.texts(".//code[@class='secret']")
    address, _, code = link.partition("#")
    assert address == "https://console.example/console/join"
    assert code not in (await owner.get(members)).html, "the link is shown twice"
    return code


async def join(owner: Visitor, project: Project, other: Visitor, role: Role) -> Shown:
    """Let a visitor join a project, as a person does."""
    accept = await other.follow(await other.submit(JOIN, JOIN, code=await invited(owner, project, role)))
    assert accept.heading == "Join a project"
    return await other.follow(await other.submit(ACCEPT, ACCEPT))


async def test_joining_and_leaving(visitor: Visitor, stranger: Visitor, project: Project) -> None:
    """An owner sends a link; its holder sees who invites them to what, joins, is shown to all members, and leaves."""
    members = f"/console/projects/{project.id}/members"
    code = await invited(visitor, project, "viewer")
    accept = await stranger.follow(await stranger.submit(JOIN, JOIN, code=f"https://console.example{JOIN}#{code}"))
    assert "ada@example.com invites you to the project Shop, with the role viewer." in accept.text
    assert code not in accept.html
    overview = await stranger.follow(await stranger.submit(ACCEPT, ACCEPT))
    assert (overview.heading, overview.texts(".//p[@role='status']")) == (
        "Shop",
        ["You are now a member of \u2068Shop\u2069, with the role viewer."],
    )
    assert (await stranger.get(ACCEPT)).location == JOIN, "the cookie with the code is still there"
    rows = [row[0] for row in (await stranger.get(members)).rows(".//section[1]//table")]
    assert sorted(rows) == ["ada@example.com", "grace@example.com You"]
    log = await visitor.get("/console/audit", project_id=project.id)
    done = [(row[1], row[2]) for row in log.rows()]
    assert sorted(done) == [
        ("ada@example.com", "Created an invitation to a project"),
        ("command line", "Created a project"),
        ("grace@example.com", "Joined a project"),
    ]
    left = await stranger.follow(await stranger.submit(members, f"{members}/{stranger.developer.id}/remove"))
    assert left.texts(".//p[@role='status']") == ["You are no longer a member of \u2068Shop\u2069."]
    for path in (members, f"/console/audit?project_id={project.id}", "/console/audit?project_id=x"):
        assert (await stranger.get(path)).status in {400, 404}, path


async def test_a_link_survives_the_sign_in(visitor: Visitor, anonymous: Browsing, project: Project) -> None:
    """A person who is not signed in gives the code first; it is in no address, and they return to it afterwards."""
    code = await invited(visitor, project)
    assert (await anonymous.get(JOIN)).status == 200
    given = await anonymous.submit(JOIN, JOIN, code=code)
    assert (given.status, given.location) == (303, ACCEPT)
    assert code not in str(given.response.headers)
    assert (await anonymous.get(ACCEPT)).location == "/console/sign-in?next=%2Fconsole%2Fjoin%2Faccept"
    sign_in = await anonymous.get("/console/sign-in", next=ACCEPT)
    assert "You opened an invitation to a project. To join it, sign in" in sign_in.text
    assert "Shop" not in sign_in.text
    assert "sign_in.js" not in sign_in.html, "the page leaves before the visitor has read it"
    other = await anonymous.get("/console/sign-in", next="/console/tokens")
    assert ("invitation to a project" in other.text, "sign_in.js" in other.html) == (False, True)


async def test_an_account_comes_first(visitor: Visitor, stranger: Visitor, project: Project) -> None:
    """The page says how a person without an account gets one: an owner of the installation can follow a link."""
    await join(visitor, project, stranger, "owner")
    members = f"/console/projects/{project.id}/members"
    assert "No account yet? Invite them on Team first." in (await visitor.get(members)).text
    theirs = await stranger.get(members)
    assert "No account yet? An owner of this installation can invite them." in theirs.text
    assert "/console/team" not in theirs.html


async def test_links_that_do_not_work(visitor: Visitor, stranger: Visitor, project: Project) -> None:
    """A used, revoked or mistyped link says so and what to do; an owner can revoke a link on the page."""
    members = f"/console/projects/{project.id}/members"
    code = await invited(visitor, project)
    own = await visitor.follow(await visitor.submit(JOIN, JOIN, code=code))
    assert own.status == 200
    assert "You are a member of this project already." in (await visitor.submit(ACCEPT, ACCEPT)).text
    page = await visitor.get(members)
    [revoke] = [form.get("action", "") for form in page.all(".//form") if "/revoke" in form.get("action", "")]
    await visitor.follow(await visitor.submit(members, revoke))
    for wrong in (code, "join_x", "", "inv_x"):
        shown = await stranger.submit(JOIN, JOIN, code=wrong)
        shown = await stranger.follow(shown) if shown.status == 303 else shown
        assert (shown.status, shown.texts(".//p[@role='alert']")) == (
            404,
            ["This invitation is not valid: it was used, was revoked or has expired. Ask for a new one."],
        )


async def test_owners_change_and_remove_members(visitor: Visitor, stranger: Visitor, project: Project) -> None:
    """Owners can change and remove members except the last owner; a removed member no longer finds the project."""
    members = f"/console/projects/{project.id}/members"
    await join(visitor, project, stranger, "developer")
    own, others = f"{members}/{visitor.developer.id}", f"{members}/{stranger.developer.id}"
    for action, fields in ((f"{own}/role", {"role": "viewer"}), (f"{own}/remove", {})):
        refused = await visitor.submit(members, action, **fields)
        assert (refused.status, refused.texts(".//p[@role='alert']")) == (
            400,
            ["A project needs an owner, and this is its only one. Make another member an owner first."],
        )
    changed = await visitor.follow(await visitor.submit(members, f"{others}/role", role="owner"))
    assert "grace@example.com now has the role owner." in changed.text
    assert (await visitor.post(f"{others}/role", {"role": "admin"})).status == 400
    await visitor.follow(await visitor.submit(members, f"{others}/remove"))
    assert (await stranger.get(f"/console/projects/{project.id}")).status == 404


def forms(project: Project, other_id: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the address and the fields of each form of a project."""
    path = f"/console/projects/{project.id}"
    uris = {"name": "Grafana", "redirect_uris": "https://a.example/cb", "auth_method": "basic", "signing_alg": "RS256"}
    yield f"{path}/settings", {"name": "New", "was_name": "Shop"}
    yield f"{path}/bot/remove", {}
    yield f"{path}/clients", {**uris, "email": "none", "id_token_lifetime": "3600", "authorization_code": "on"}
    yield f"{path}/try", {}
    yield f"{path}/regenerate", {"confirmation": project.id}
    yield f"{path}/members/invitations", {"role": "viewer"}
    yield f"{path}/members/{other_id}/role", {"role": "developer"}
    yield f"{path}/members/{other_id}/remove", {}
    yield f"{path}/delete", {"confirmation": project.id}


async def test_no_form_is_for_viewers(
    console: Installation, visitor: Visitor, stranger: Visitor, project: Project
) -> None:
    """Each form is refused with the role that it needs, and changes nothing."""
    await join(visitor, project, stranger, "viewer")
    failures = []
    before = await console.storage.projects.read_project(project.id)
    for path, fields in forms(project, visitor.developer.id):
        shown = await stranger.post(path, fields)
        if shown.status != 400 or "and yours is viewer" not in shown.text:
            failures.append((path, shown.status, shown.html))
    assert failures == []
    assert await console.storage.projects.read_project(project.id) == before


async def test_only_those_who_may_erase_a_user_see_the_button(
    console: Installation, visitor: Visitor, stranger: Visitor, project: Project
) -> None:
    """Erasing covers the projects that the visitor can change, so it would not erase what a viewer sees here."""
    await join(visitor, project, stranger, "viewer")
    await visitor.confirm(project.id, ADA)
    page = f"/console/projects/{project.id}/users/{ADA.messenger_id}"
    links = [(await browser.get(page)).all(".//a[.='Erase this user…']") for browser in (visitor, stranger)]
    assert [len(each) for each in links] == [1, 0]


async def test_the_page_shows_what_each_role_may_do(visitor: Visitor, stranger: Visitor, project: Project) -> None:
    """The table matches the rules. A member who is not an owner sees only the form to leave."""
    await join(visitor, project, stranger, "viewer")
    shown = await stranger.get(f"/console/projects/{project.id}/members")
    rows = shown.rows(".//details//table")
    assert rows == [
        [words, *("Yes" if action in PERMITTED[role] else "No" for role in ROLES)] for action, words in ACTIONS.items()
    ]
    actions = [urlsplit(form.get("action", "")).path for form in shown.all(".//main//form")]
    assert actions == [f"/console/projects/{project.id}/members/{stranger.developer.id}/remove"]
    assert "You are a viewer of this project." in shown.text


@pytest.mark.parametrize("role", ROLES)
async def test_pages_hide_what_a_role_must_not_see(
    console: Installation, visitor: Visitor, stranger: Visitor, role: Role
) -> None:
    """The path of the webhook URL and signatures are for those who may read the secret, addresses for owners."""
    project, _ = await visitor.create_project("Shop", webhook_url="https://hooks.example.com/T0/secret-path")
    await join(visitor, project, stranger, role)
    await visitor.submit(f"/console/projects/{project.id}/webhooks", f"/console/projects/{project.id}/webhooks/test")
    path = f"/console/projects/{project.id}"
    links = [each.get("href", "") for each in (await stranger.get(f"{path}/webhooks")).all(".//table//a")]
    (sent,) = [each for each in links if each.startswith("/console/deliveries/")]
    pages = [f"{path}{each}" for each in ("", "/settings", "/webhooks", "/members", "/clients", "/try", "/users")]
    pages += [sent, "/console/projects", "/console/sessions"]
    shown = "".join([(await stranger.get(each)).html for each in pages])
    delivery = await stranger.get(sent)
    signatures = [
        value
        for name in ("X-Service-Signature", "webhook-signature")
        for value in delivery.texts(f".//dl[@class='headers']/div[dt='{name}']/dd")
    ]
    may_read = "secrets" in PERMITTED[role]
    assert ("secret-path" in shown, "…" not in signatures) == (may_read, may_read)
    assert len(signatures) == 2
    log = await stranger.get("/console/audit", project_id=project.id)
    methods = {row[1]: row[4] for row in log.rows() if row[1] != "command line"}
    assert ("from" in methods["ada@example.com"]) is ("traces" in PERMITTED[role])
    assert "from" in methods["grace@example.com"]
