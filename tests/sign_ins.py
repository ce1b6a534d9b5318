"""Store credentials of developers without the pages and the messenger that normally create them."""

from taproof.core.accounts import AccessToken, Actor, ConsoleSession, Developer
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import key_hash, new_id, new_session_id, new_session_token, session_key
from taproof.core.projects import SERVICE_DEVELOPER, Project
from taproof.core.session_state import SESSION_LIFETIME
from taproof.core.sessions import DeveloperSignIn, NewSession
from taproof.storage.protocol import Storage


async def stored_sign_in(storage: Storage, now: int) -> DeveloperSignIn:
    """Store a sign-in to one of the service's own projects, and return it."""
    project_id = new_id("proj", system_entropy)
    project = Project(
        id=project_id,
        developer_id=SERVICE_DEVELOPER,
        name="Taproof console",
        secret_key_preview="sk_aaaa…zzzz",
        encrypted_webhook_secret=b"encrypted",
        webhook_url="",
        is_active=True,
        public_access=False,
        collect_phone=False,
        created_at=now,
    )
    await storage.projects.create_project(project, key_hash(project_id))
    key = session_key(new_session_token(now, system_entropy))
    assert key is not None
    session = NewSession(key, new_session_id(now, system_entropy), project_id, now, now + SESSION_LIFETIME)
    assert await storage.sessions.create_session(session, public=False)
    return DeveloperSignIn(key, session.id)


async def by_token(storage: Storage, developer: Developer, now: int) -> Actor:
    """Return a developer who acts with a new access token, without an audit entry."""
    token = AccessToken(new_id("tok", system_entropy), developer.id, "test", "tap_aaaa…zzzz", now)
    assert await storage.credentials.create_access_token(token, key_hash(token.id))
    return Actor(developer, "access_token", token.id, "203.0.113.7", token.grant)


async def by_console(storage: Storage, developer: Developer, now: int) -> Actor:
    """Return a developer who acts in a new console session, without an audit entry."""
    session_id = new_id("cses", system_entropy)
    session = ConsoleSession(session_id, developer.id, now, now, None, "", "Test browser", developer.messenger_id)
    assert await storage.credentials.create_console_session(session, key_hash(session_id))
    return Actor(developer, "console", session_id, "203.0.113.7", session.grant)
