"""`request.user` for who signs in with the messenger: a backend of django.contrib.auth.

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


class MessengerBackend(ModelBackend):  # type: ignore[misc]  # Django comes without types.
    """Finds the user of a messenger account, and makes one at the first sign-in.

    A user model with a unique field `messenger_id` is searched by it: best for a new project. Any other is searched by
    the user name `messenger_<id>`. Then only a user without a password is taken, since anybody might have registered
    that name with a password before; where names are given out without passwords (LDAP, other sign-ins), keep that
    prefix from being chosen. Override `user_for` to link accounts by a rule of your own.
    """

    def authenticate(
        self,
        request: HttpRequest | None,  # noqa: ARG002 — Django passes it.
        taproof_identity: SignedIn | None = None,
    ) -> Any | None:
        """Return the user, None when the account may not sign in. Only Taproof's own view calls it with an identity."""
        if not isinstance(taproof_identity, SignedIn):
            return None
        user = self.user_for(taproof_identity)
        return user if user is not None and self.user_can_authenticate(user) else None

    async def aauthenticate(self, request: HttpRequest | None, taproof_identity: SignedIn | None = None) -> Any | None:
        """Do as `authenticate` does. ModelBackend's own would check a password."""
        return await sync_to_async(self.authenticate)(request, taproof_identity)

    def user_for(self, identity: SignedIn) -> Any | None:
        """Return the user of this messenger account, made when there is none; None lets nobody in."""
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
            user, _ = model._default_manager.get_or_create(**key, defaults=new)  # noqa: SLF001 — Django's own way.
        except IntegrityError:
            return None  # Somebody else has registered the name.
        return user if "messenger_id" in key or not user.has_usable_password() else None


def start_session(request: HttpRequest, identity: SignedIn) -> bool:
    """Start a session with nothing of the one before, which ends; sign `request.user` in if the backend is used.

    Returns:
        False, and the session is left as it was, when the account may not sign in.
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
        raise ImproperlyConfigured("The user model's field messenger_id must be unique: it says whose account it is.")
    return True
