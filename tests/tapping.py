"""Decide a sign-in like a user who sees the page: with Confirm, or with the match code if there is one."""

from tests.whole_sign_in import WholeSignIn

from taproof.core.identifiers import session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import PromptDetails
from taproof.service.sessions.seen import SeenSession


async def tap_right(signin: WholeSignIn, session_token: str, identity: MessengerIdentity) -> SeenSession:
    """Confirm an opened sign-in; with match codes, choose the one that its page shows."""
    key = session_key(session_token)
    session = None if key is None else await signin.storage.sessions.read_session(key)
    details = PromptDetails() if session is None or session.prompt is None else session.prompt
    choice = None
    if details.match_code is not None and details.match_choices is not None:
        choice = details.match_choices.split().index(details.match_code)
    return await signin.confirm_session(session_token, identity, choice=choice)
