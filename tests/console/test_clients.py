"""The OpenID Connect pages of a project: its clients, their secrets, and the values to paste."""

import re

import pytest
from tests.console.browsing import Shown
from tests.console.conftest import ADA, BASE_URL, Installation, Visitor
from tests.granting import grant

from taproof.core.identifiers import is_key, key_hash
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import ClientChanges, OidcClient, client_changes
from taproof.core.oidc.groups import Groups
from taproof.core.oidc.model import RefusedMethod
from taproof.core.projects import Project

URI = "https://grafana.example/login/generic_oauth"
SECRET = re.compile(r"\bocs_[A-Za-z0-9]{10,}")


def page_of(project: Project, client: OidcClient | None = None) -> str:
    return f"/console/projects/{project.id}/clients" + (f"/{client.id}" if client else "")


async def new_client(
    console: Installation, visitor: Visitor, project: Project, changes: ClientChanges | None = None
) -> tuple[OidcClient, str | None]:
    """Create a client through the service."""
    changes = changes or ClientChanges(name="Grafana", redirect_uris=(URI,))
    return await console.services.clients.create_client(visitor.actor, project.id, changes)


async def stored(console: Installation, visitor: Visitor, project: Project) -> list[OidcClient]:
    return await console.services.clients.list_clients(visitor.developer, project.id)


def copied(shown: Shown) -> dict[str, str]:
    """Return the values with a copy button, by the label that the button says."""
    ids = {button.get("data-copy", "")[1:]: button for button in shown.all(".//button[@data-copy]")}
    return {
        "".join(button.itertext()).removeprefix("Copy").lstrip(": "): "".join(shown.one(f".//*[@id='{id}']").itertext())
        for id, button in ids.items()  # noqa: A001 — an element's id.
    }


ADDRESSES = {
    "Issuer": BASE_URL,
    "Discovery URL": f"{BASE_URL}/.well-known/openid-configuration",
    "Authorization endpoint": f"{BASE_URL}/oidc/authorize",
    "Token endpoint": f"{BASE_URL}/oidc/token",
    "Userinfo endpoint": f"{BASE_URL}/oidc/userinfo",
    "Keys (JWKS)": f"{BASE_URL}/oidc/jwks",
    "End session endpoint": f"{BASE_URL}/oidc/end_session",
}


async def test_a_new_client_shows_what_to_paste(
    visitor: Visitor, console: Installation, capfd: pytest.CaptureFixture[str], project: Project
) -> None:
    """The client's page has every value with a copy button.

    The secret is shown once, and in no address, log or list.
    """
    page = page_of(project)
    assert copied(await visitor.get(page)) == ADDRESSES
    answer = await visitor.submit(page, page, name=" Grafana ", redirect_uris=f"{URI}\r\n\r\nhttp://localhost/cb\r\n")
    shown = await visitor.follow(answer)
    [client] = await stored(console, visitor, project)
    assert (client.name, client.redirect_uris) == ("Grafana", (URI, "http://localhost/cb"))
    assert (client.auth_method, client.signing_alg, client.id_token_lifetime) == ("any", "RS256", 3600)
    assert client.grant_types == ("authorization_code",)
    [secret] = SECRET.findall(shown.html)
    assert is_key(secret, "ocs")
    found = await console.storage.oidc_clients.read_client(client.id)
    assert found is not None
    assert found.secret_hash == key_hash(secret)
    values = {"Client id": client.id, "Client secret": secret, "Scopes": "openid profile"}
    assert copied(shown) == values | ADDRESSES
    assert shown.response.headers["cache-control"] == "no-store"
    assert answer.location == page_of(project, client)
    for again in (await visitor.get(page_of(project, client)), await visitor.get(page)):
        assert not SECRET.findall(again.html)
        assert f"{secret[:8]}…{secret[-4:]}" in again.text
    assert secret not in str(answer.response.headers) + "".join(capfd.readouterr())


async def test_a_client_without_a_secret(visitor: Visitor, console: Installation, project: Project) -> None:
    """A public client shows none; choosing a method with a secret shows a new one once, and none erases it."""
    public = ClientChanges(name="App", redirect_uris=("com.example.app:/cb",), auth_method="none")
    client, _ = await new_client(console, visitor, project, public)
    page = page_of(project, client)
    shown = await visitor.get(page)
    assert "None: the application must use PKCE" in shown.text
    assert not shown.all(f".//form[@action='{page}/regenerate']")
    assert (await visitor.get(page_of(project))).rows()[0][2] == "None"
    shown = await visitor.follow(await visitor.submit(page, page, auth_method="post"))
    [secret] = SECRET.findall(shown.html)
    shown = await visitor.follow(await visitor.submit(page, f"{page}/regenerate"))
    assert SECRET.findall(shown.html) != [secret]
    assert "The secret was replaced" in shown.text
    shown = await visitor.follow(await visitor.submit(page, page, auth_method="none"))
    assert not SECRET.findall(shown.html)
    assert await stored(console, visitor, project) == [client]
    refused = await visitor.post(f"{page}/regenerate")
    assert (refused.status, "has no secret" in refused.text) == (400, True)


async def test_an_application_that_sends_its_secret_in_the_other_way(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """The client's page says what was refused and which setting accepts it, until that setting is chosen."""
    for method, used, told in (
        ("basic", "post", ("in the request body, and this client expects", "Choose “Secret, as the application")),
        ("none", "basic", ("in the Authorization header, and this client expects a call without", "Remove the secret")),
    ):
        wanted = client_changes({"name": "App", "redirect_uris": [URI], "auth_method": method})
        client, _ = await new_client(console, visitor, project, wanted)
        page = page_of(project, client)
        assert "was refused" not in (await visitor.get(page)).text
        refused = RefusedMethod(used, client.created_at)
        assert await console.storage.oidc_clients.record_refused_method(client.id, refused, method)
        shown = (await visitor.get(page)).text
        assert "The application was refused at" in shown
        assert all(each in shown for each in told)
        shown = (await visitor.follow(await visitor.submit(page, page, auth_method="any"))).text
        assert "was refused" not in shown


async def test_settings_change_what_was_changed_in_the_form(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """Only fields that differ from the values shown are changed, so an outdated form undoes nothing."""
    client, _ = await new_client(console, visitor, project)
    page = page_of(project, client)
    stale = (await visitor.get(page)).fields(page)
    update = console.services.clients.update_client
    await update(
        visitor.actor, project.id, client.id, ClientChanges(email="synthetic", redirect_uris=("https://a.b/",))
    )
    shown = await visitor.follow(
        await visitor.post(page, stale | {"name": "New", "id_token_lifetime": "300", "device_code": "on"})
    )
    assert "Saved." in shown.text
    [changed] = await stored(console, visitor, project)
    assert (changed.name, changed.email, changed.redirect_uris) == ("New", "synthetic", ("https://a.b/",))
    assert (changed.id_token_lifetime, changed.grant_types) == (300, ("authorization_code", "device_code"))
    assert not SECRET.findall(shown.html)
    assert "Nothing was changed." in (await visitor.follow(await visitor.submit(page, page))).text


async def test_a_refused_form_keeps_what_was_typed(visitor: Visitor, console: Installation, project: Project) -> None:
    """The error uses the form's labels, and nothing is stored."""
    client, _ = await new_client(console, visitor, project)
    for typed, sentence in (
        ({"name": "x" * 101}, "The name must have 1 to 100 characters."),
        ({"redirect_uris": "javascript:alert(1)"}, "Redirect URIs: number 1 of the list must begin with https://"),
        ({"redirect_uris": " "}, "Redirect URIs must contain 1 to 20 addresses."),
        ({"id_token_lifetime": "1e3"}, "The lifetime of ID tokens must be a whole number of seconds."),
        ({"id_token_lifetime": "299"}, "The lifetime of ID tokens must be a whole number of seconds from 300 to"),
        ({"authorization_code": ""}, "How users sign in must contain one or more of: authorization_code, device_code"),
        ({"post_logout_redirect_uris": "x"}, "Post-logout redirect URIs: number 1 of the list must be absolute"),
        ({"backchannel_logout_uri": "x"}, "The back-channel logout URI must be absolute"),
        ({"auth_method": "x"}, "auth_method must be one of: any, basic, post, none."),
    ):
        for page in (page_of(project), page_of(project, client)):
            valid = {"name": "Other", "redirect_uris": URI}
            shown = await visitor.submit(page, page, **(valid | typed))
            assert shown.status == 400, typed
            assert sentence in shown.alert
            assert shown.fields(page)["name"] == (valid | typed)["name"]
    assert await stored(console, visitor, project) == [client]


async def test_deleting_a_client(visitor: Visitor, console: Installation, project: Project) -> None:
    """The client leaves the list, and its pages are 404, as for another project's or an unknown client."""
    client, _ = await new_client(console, visitor, project)
    other, _ = await visitor.create_project("Other")
    foreign, _ = await new_client(console, visitor, other)
    page = page_of(project, client)
    shown = await visitor.follow(await visitor.submit(page, f"{page}/delete"))
    assert "Grafana\u2069 was deleted." in shown.text
    assert "This project has no clients yet" in shown.text
    for gone in (page, page_of(project, foreign), page_of(project) + "/oidc_x"):
        assert (await visitor.get(gone)).status == 404
        for below in ("", "/regenerate", "/delete"):
            assert (await visitor.post(gone + below, {"name": "Taken"})).status == 404
    assert await stored(console, visitor, other) == [foreign]


async def test_the_page_says_what_a_project_limits(visitor: Visitor, console: Installation, project: Project) -> None:
    """Without public access, clients need a secret; with phone numbers there is a scope."""
    client, _ = await new_client(console, visitor, project)
    hints = ("only clients with a secret", "Add phone for the phone number")
    assert not [hint for hint in hints if hint in (await visitor.get(page_of(project, client))).text]
    await visitor.change(project, public_access=False, collect_phone=True)
    assert not [hint for hint in hints if hint not in (await visitor.get(page_of(project, client))).text]


async def test_groups_in_the_console(visitor: Visitor, console: Installation) -> None:
    """Groups are made on the client's page, and members are added there and on the user's page."""
    project, _ = await visitor.create_project()
    client, _ = await new_client(console, visitor, project)
    page = page_of(project, client)

    async def groups() -> Groups:
        return (await stored(console, visitor, project))[0].groups

    async def edit(action: str, **fields: str) -> Shown:
        return await visitor.post(f"{page}/groups", {"action": action, **fields})

    await edit("add-group", group="staff")
    await edit("add-group", group="admins")
    await edit("add-member", group="staff", messenger_id="2002")
    await visitor.submit(page, f"{page}/allowed-groups", **{"allowed staff": "on"})
    assert await groups() == Groups({"admins": (), "staff": ("2002",)}, ("staff",))
    assert "2002" in (await visitor.get(page)).html
    assert copied(await visitor.get(page))["Scopes"] == "openid profile groups"
    for refused, sentence in (
        (await edit("delete-group", group="staff"), "is one of the groups that may sign in"),
        (await edit("add-member", group="staff", messenger_id="ada"), "must be a number"),
        (await edit("add-group", group="<b>"), "The name of a group"),
        (await edit("", group="staff"), "Use the forms"),
    ):
        assert (refused.status, sentence in refused.html) == (400, True)
    await edit("remove-member", group="staff", messenger_id="2002")
    await edit("delete-group", group="admins")
    created = await visitor.start_session(project.id)
    await console.messenger.confirm(created.deeplink)
    user, own = f"/console/projects/{project.id}/users/{ADA.messenger_id}", f"{client.id} staff"
    await visitor.submit(user, f"{user}/groups", group=own)
    await visitor.post(f"{user}/groups", {"action": "add-member", "group": own})
    assert await groups() == Groups({"staff": (ADA.messenger_id,)}, ("staff",))
    assert "staff in" in (await visitor.get(user)).html
    await visitor.post(f"{user}/groups", {"action": "remove-member", "group": own})
    assert await groups() == Groups({"staff": ()}, ("staff",))


async def test_who_is_signed_in_and_signing_one_out(visitor: Visitor, console: Installation) -> None:
    """The list has a button for each user, which ends what the application holds; names are text, not markup."""
    project, _ = await visitor.create_project()
    settings = {"grant_types": ("authorization_code", "refresh_token"), "backchannel_logout_uri": "https://a.example/"}
    changes = ClientChanges(name="Grafana", redirect_uris=(URI,), **settings)  # type: ignore[arg-type]
    client, _ = await new_client(console, visitor, project, changes)
    page = f"{page_of(project, client)}/grants"
    shown = await visitor.get(page_of(project, client))
    assert f'href="{page}"' in shown.html
    assert copied(shown)["Scopes"] == "openid profile offline_access"
    assert "Nobody is signed in" in (await visitor.get(page)).text
    now = console.clock()
    ada = await grant(console.storage, project.id, client.id, MessengerIdentity("1001", "Ada <b>", "ada"), now)
    grace = await grant(
        console.storage, project.id, client.id, MessengerIdentity("1002", "Grace", ""), now - 1, keeps=False
    )
    shown = await visitor.get(page)
    assert [row[1] for row in shown.rows()] == ["1001", "1002"]
    assert [row[3] for row in shown.rows()] == ["Not yet", "No refresh token"]
    assert "Ada <b>" in shown.text
    end = f"{page}/{ada.id}/end"
    ended = await visitor.follow(await visitor.submit(page, end))
    assert "The user is signed out" in ended.text
    assert [row[1] for row in ended.rows()] == ["1002"]
    again = await visitor.post(end, {})
    assert again.status == 404
    assert "no longer signed in" in again.text
    (due,) = await console.storage.logouts.claim_logouts(now, now + 1, 9)
    assert await console.storage.logouts.retry_logout(due, None, "500", now)
    assert "answered 500" in (await visitor.get(page_of(project, client))).text
    assert grace.id in (await visitor.get(page)).html


async def test_a_client_that_holds_nothing_has_no_list(visitor: Visitor, console: Installation) -> None:
    """The section appears with refresh tokens or a logout URI only."""
    project, _ = await visitor.create_project()
    client, _ = await new_client(console, visitor, project)
    assert "Who is signed in" not in (await visitor.get(page_of(project, client))).text
