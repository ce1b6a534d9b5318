"""Sign-ins of developers to the service itself, stored without the pages and the messenger that lead there."""

from taproof.core.entropy import system_entropy
from taproof.core.identifiers import key_hash, new_id, new_session_id, new_session_token, session_key
from taproof.core.model import SERVICE_DEVELOPER, DeveloperSignIn, NewSession, Project
from taproof.core.session_state import SESSION_LIFETIME
from taproof.storage.protocol import Storage


async def stored_sign_in(storage: Storage, now: int) -> DeveloperSignIn:
    """Store a sign-in to a project of the service itself, and return it."""
    project_id = new_id("proj", system_entropy)
    project = Project(
        id=project_id,
        developer_id=SERVICE_DEVELOPER,
        name="Taproof console",
        secret_key_preview="sk_aaaa…zzzz",
        sealed_webhook_secret=b"sealed",
        webhook_url="",
        is_active=True,
        public_access=False,
        collect_phone=False,
        created_at=now,
    )
    await storage.create_project(project, key_hash(project_id))
    key = session_key(new_session_token(now, system_entropy))
    assert key is not None
    session = NewSession(key, new_session_id(now, system_entropy), project_id, now, now + SESSION_LIFETIME)
    assert await storage.create_session(session, public=False)
    return DeveloperSignIn(key, session.id)
