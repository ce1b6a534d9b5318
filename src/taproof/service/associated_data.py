"""What each encrypted value is bound to, so that it opens in its own row only (core/encryption.py)."""


def webhook_secret_associated_data(project_id: str) -> str:
    """Return what a project's encrypted webhook secret is bound to."""
    return f"webhook_secret:{project_id}"


def bot_token_associated_data(project_id: str) -> str:
    """Return what the encrypted token of a project's own bot is bound to."""
    return f"bot_token:{project_id}"


def event_body_associated_data(event_id: str) -> str:
    """Return what an event's encrypted body is bound to."""
    return f"event_body:{event_id}"


def phone_associated_data(session_id: str) -> str:
    """Return what a session's encrypted phone number is bound to."""
    return f"phone:{session_id}"


def phone_request_associated_data(session_id: str) -> str:
    """Return what the encrypted token of a session that waits for a phone number is bound to."""
    return f"phone_request:{session_id}"
