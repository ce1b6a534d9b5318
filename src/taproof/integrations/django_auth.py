"""Signs users in as `request.user`, with a backend for django.contrib.auth.

AUTHENTICATION_BACKENDS = ["taproof.integrations.django_auth.MessengerBackend", …ModelBackend]
"""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth import authenticate, get_backends, get_user_model, login
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.hashers import make_password
from django.core.exceptions import FieldDoesNotExist, ImproperlyConfigured
from django.db import IntegrityError
from django.http import HttpRequest

from taproof.integrations.endpoint import SignedIn


class MessengerBackend(ModelBackend):  # type: ignore[misc]  # Django has no types.
    """Finds the user for a messenger account, and creates one at the first sign-in.

    If the user model has a unique field `messenger_id`, users are found by it, which is best for a new project.
    Otherwise they are found by the user name `messenger_<id>`, and only users without a password are accepted, because
    anybody could have registered that name with a password. If user names are assigned without passwords (LDAP, other
    sign-in methods), reserve that prefix. Override `user_for` to link accounts in another way.
    """

    def authenticate(
        self,
        request: HttpRequest | None,  # noqa: ARG002 — Django passes it.
        taproof_identity: SignedIn | None = None,
    ) -> Any | None:
        """Return the user, or None if the account cannot sign in. Only Taproof's own view passes an identity."""
        if not isinstance(taproof_identity, SignedIn):
            return None
        user = self.user_for(taproof_identity)
        return user if user is not None and self.user_can_authenticate(user) else None

    async def aauthenticate(self, request: HttpRequest | None, taproof_identity: SignedIn | None = None) -> Any | None:
        """Call `authenticate`. ModelBackend's own method would check a password."""
        return await sync_to_async(self.authenticate)(request, taproof_identity)

    def user_for(self, identity: SignedIn) -> Any | None:
        """Return this messenger account's user, creating it if needed. Returning None refuses the sign-in."""
        model: Any = get_user_model()
        name = f"messenger_{identity.messenger_id}"
        new = {"password": make_password(None)}
        if _has_messenger_id(model):
            if model.USERNAME_FIELD != "messenger_id":
                new[model.USERNAME_FIELD] = name
            key = {"messenger_id": identity.messenger_id}
        else:
            key = {model.USERNAME_FIELD: name}
        try:
            user, _ = model._default_manager.get_or_create(**key, defaults=new)  # noqa: SLF001 — Django's backends use it too.
        except IntegrityError:
            return None  # Another user has registered the name.
        return user if "messenger_id" in key or not user.has_usable_password() else None


def start_session(request: HttpRequest, identity: SignedIn) -> bool:
    """End the previous session, start a new, empty one, and sign in `request.user` if the backend is used.

    Returns:
        False if the account cannot sign in; the session is then unchanged.
    """
    user = None
    if any(isinstance(backend, MessengerBackend) for backend in get_backends()):
        user = authenticate(request, taproof_identity=identity)
        if user is None:
            return False
    request.session.flush()
    if user is not None:
        login(request, user)
    return True


def _has_messenger_id(model: Any) -> bool:
    try:
        field = model._meta.get_field("messenger_id")  # noqa: SLF001 — Django documents it.
    except FieldDoesNotExist:
        return False
    if not field.unique:
        raise ImproperlyConfigured(
            "The user model's field messenger_id must be unique, because it identifies the user."
        )
    return True
