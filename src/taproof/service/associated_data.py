"""What each sealed value is bound to, so that it opens in its own row only (core/encryption.py)."""


def webhook_secret_binding(project_id: str) -> str:
    """Return what a project's sealed webhook secret is bound to."""
    return f"webhook_secret:{project_id}"


def bot_token_binding(project_id: str) -> str:
    """Return what the sealed token of a project's own bot is bound to."""
    return f"bot_token:{project_id}"


def event_body_binding(event_id: str) -> str:
    """Return what an event's sealed body is bound to."""
    return f"event_body:{event_id}"


def phone_binding(session_id: str) -> str:
    """Return what a session's sealed phone number is bound to."""
    return f"phone:{session_id}"


def phone_request_binding(session_id: str) -> str:
    """Return what the sealed token of a session that waits for a phone number is bound to."""
    return f"phone_request:{session_id}"
