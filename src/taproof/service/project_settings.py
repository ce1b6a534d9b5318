"""The rules for a project's settings, and how the audit log describes a change of them."""

import dataclasses
from collections.abc import Sequence
from typing import Any, get_args

from taproof.contract.account import Plan
from taproof.contract.project import SameDevice
from taproof.core.accounts import NO_PHONES
from taproof.core.address_rules import AddressRules
from taproof.core.deliveries import read_events
from taproof.core.errors import InvalidRequest
from taproof.core.logo_url import logo_url_problem
from taproof.core.names import name_problem
from taproof.core.origins import read_origins
from taproof.core.project_texts import NO_TEXTS, changed_texts, read_texts
from taproof.core.projects import Project, ProjectChanges
from taproof.core.return_url import read_return_urls
from taproof.core.webhook_url import url_origin, webhook_url_problem


@dataclasses.dataclass(frozen=True, slots=True)
class SettingsRules:
    """Checks settings before they are stored, with the addresses and ports allowed in webhook URLs.

    `allow_loopback_http`: accept http:// webhook and logo URLs to a loopback address, as the sandbox does.
    """

    address_rules: AddressRules
    webhook_ports: frozenset[int]
    allow_loopback_http: bool

    def checked(self, plan: Plan | None, changes: ProjectChanges) -> ProjectChanges:
        """Return changes as they will be stored. Raise InvalidRequest with a sentence that names the invalid field."""
        name = None if changes.name is None else changes.name.strip()
        if name is not None and (problem := name_problem(name)) is not None:
            raise InvalidRequest(f"name {problem}.")
        if changes.webhook_url is not None:
            problem = webhook_url_problem(
                changes.webhook_url,
                rules=self.address_rules,
                ports=self.webhook_ports,
                allow_loopback_http=self.allow_loopback_http,
            )
            if problem is not None:
                raise InvalidRequest(f"webhook_url {problem}.")
        if changes.same_device is not None and changes.same_device not in get_args(SameDevice):
            raise InvalidRequest("same_device must be off, offer or require.")
        if changes.logo_url is not None:
            problem = logo_url_problem(changes.logo_url, allow_loopback_http=self.allow_loopback_http)
            if problem is not None:
                raise InvalidRequest(f"logo_url {problem}.")
        if changes.collect_phone and plan == "free":
            raise InvalidRequest(NO_PHONES)
        return dataclasses.replace(
            changes,
            name=name,
            allowed_origins=None if changes.allowed_origins is None else read_origins(changes.allowed_origins),
            webhook_events=None if changes.webhook_events is None else read_events(changes.webhook_events),
            return_urls=None if changes.return_urls is None else read_return_urls(changes.return_urls),
            texts=None if changes.texts is None else read_texts(changes.texts),
        )


def audit_details(before: Project | None, changes: ProjectChanges) -> dict[str, Any]:
    """Return the details of an audit entry. `before` is the project; it is needed only if a list changes.

    A URL may contain a secret, so only its origin is logged. Whole lists may be too long for an entry.
    """
    details = changes.given()
    for name in ("webhook_url", "logo_url"):
        if details.get(name) is not None:
            details[name] = url_origin(details[name])
    if before is not None and changes.allowed_origins is not None:
        details["allowed_origins"] = _difference(before.allowed_origins, changes.allowed_origins)
    if before is not None and changes.return_urls is not None:
        difference = _difference(before.return_urls, changes.return_urls)
        shown = {name: [url_origin(each) for each in difference[name]] for name in ("added", "removed")}
        details["return_urls"] = difference | shown
    if changes.texts is not None:
        details["texts"] = changed_texts(NO_TEXTS if before is None else before.texts, changes.texts)
    return details


def _difference(before: Sequence[str], now: Sequence[str]) -> dict[str, Any]:
    return {
        "count": len(now),
        "added": [each for each in now if each not in before],
        "removed": [each for each in before if each not in now],
    }
