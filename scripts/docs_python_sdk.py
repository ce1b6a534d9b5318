"""Generate the page of the Python SDK from its docstrings."""

import inspect
import re
from types import FunctionType
from typing import Any, Final, get_type_hints

from scripts.docs_markdown import cell, table

import taproof
from taproof.contract.fields import Field, described

INTRO: Final = """\
# Python SDK

`pip install taproof` (not on PyPI yet: [Install](../how-to/install.md)) installs the SDK with two dependencies, and
nothing of the server. `pip install "taproof[async]"` adds httpx, for `AsyncClient`. Import the names below from
`taproof`. There are ready integrations for [FastAPI](../how-to/fastapi.md), [Django](../how-to/django.md) and
[Flask](../how-to/flask.md).

A server that checks a proof needs one function:

```python
import os

from taproof import MemoryGuard, verify_proof

identity = verify_proof(
    os.environ["PROOF"],
    os.environ["TAPROOF_WEBHOOK_SECRET"].replace(",", " ").split(),  # One secret; two during a rotation.
    project_id=os.environ["TAPROOF_PROJECT_ID"],
    guard=MemoryGuard(),
)
print(identity.messenger_id, identity.messenger_name)
```

Your own program can start a sign-in with the project's secret key (`sk_…`):

<!-- run by tests/slow/docs/test_python_sdk.py -->
```python
import os

from taproof import Client, verify_proof

with Client(os.environ["TAPROOF_BASE_URL"], secret_key=os.environ["TAPROOF_SECRET_KEY"]) as client:
    sign_in = client.create_session()
    print("Open", sign_in.deeplink)  # Show it to the user, as a link or a QR code.
    result = client.wait_for_user(sign_in)
if result.is_confirmed:
    identity = verify_proof(result.proof, os.environ["TAPROOF_WEBHOOK_SECRET"])
    print("Welcome,", identity.messenger_name)
else:
    print("Not signed in:", result.status)
```

`is_confirmed` is a property, so write it without parentheses. If the user has not decided within 30 seconds,
`wait_for_user(sign_in, timeout=30)` returns with the status `pending`. Call it again to keep waiting.

## Bring the user back to the browser where the sign-in began

If the project's `same_device` is `offer` or `require`, the message in the messenger has a button *Back to …* after
Confirm. It opens `return_url` with a return code in the fragment. Keep the `SignIn` in the user's session on your
server. Your page sends the code, and your server reads the result with both:

```python
from taproof import Client, SignIn, SignInResult


def start(client: Client) -> SignIn:
    return client.create_session(return_url="https://shop.example.com/signed-in")


def finish(client: Client, sign_in: SignIn, code: str) -> SignInResult:
    # `sign_in` is from this browser's session, and `code` from the page at return_url.
    return client.verify_session(sign_in, return_code=code)
```

In the page, read `taproof_return` from `location.hash`, remove it from the address at once with
`history.replaceState`, and then post it to your server.

If the browser session has no `sign_in`, the link was opened in another browser. Say so, and ask the user to open the
address in the browser where the sign-in began. Never ask for a code to type: an attacker could ask for it, too.

With `sign_in.return_required` (`require`), show the link and no QR code. `verify_session(sign_in, hints=True)` tells
what a pending sign-in waits for, and `cancel_session(sign_in)` ends it when the user closes your page.

## The developer API

The client also covers the developer API:

```python
import os

from taproof import Client

with Client(os.environ["TAPROOF_BASE_URL"], access_token=os.environ["ACCESS_TOKEN"]) as client:
    for project in client.list_projects():
        print(project.name, project.sessions_count)
    for session in client.list_sessions(status="used"):  # Confirmed, and the application got the result.
        print(session.messenger_name, session.confirmed_at)
```
"""
_SECTIONS: Final = ("Args", "Returns", "Yields", "Raises", "Attributes")


def python_sdk_page() -> str:
    """Return the page with every public name of `taproof`."""
    names = [(name, getattr(taproof, name)) for name in taproof.__all__]
    errors = [(name, each) for name, each in names if inspect.isclass(each) and issubclass(each, Exception)]
    groups: dict[str, list[tuple[str, Any]]] = {
        "Functions": [(name, each) for name, each in names if isinstance(each, FunctionType)],
        "Classes": [(name, each) for name, each in names if inspect.isclass(each) and (name, each) not in errors],
        "Types": [
            (name, each) for name, each in names if not isinstance(each, FunctionType) and not inspect.isclass(each)
        ],
    }
    parts = [INTRO]
    for title, some in groups.items():
        if some:
            parts += [f"## {title}", "", *(_entry(name, each) for name, each in some)]
    rows = [(f"`{name}`", f"`{each.__mro__[1].__name__}`", cell(inspect.getdoc(each) or "")) for name, each in errors]
    parts += ["## Errors", "", table(("error", "is a", "meaning"), rows)]
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> str:
    if not callable(thing) or getattr(thing, "__origin__", None) is not None:
        return f"### {name}\n\n```text\n{_readable(str(thing))}\n```\n"
    parts = [f"### {name}", "", f"```text\n{name}{_signature(thing)}\n```", "", _prose(inspect.getdoc(thing) or "")]
    if not inspect.isclass(thing):
        return "\n".join(parts)
    if thing.__module__.startswith("taproof.contract."):
        return "\n".join([*parts, *_fields(thing)])
    members = _members(thing)
    if thing is taproof.AsyncClient:
        # AsyncClient has the same methods, to be awaited, so they are listed once.
        members = [(each, method) for each, method in members if not hasattr(taproof.Client, each)]
        parts.append("It has the methods of [`Client`](#client) as coroutines, and one more.\n")
    if members:
        parts.append("**Methods**\n")
    for member, each in members:
        usage = member if isinstance(each, property) else f"{member}{_signature(each, 1_000)}"
        first, *_ = (inspect.getdoc(each) or "").split("\n\n")
        parts.append(f"- `{usage}`: {' '.join(first.split())}")
    return "\n".join([*parts, ""] if members else parts)


def _fields(thing: type) -> list[str]:
    """Return the list of the described fields of a class of `contract/`, in the words of Python."""
    told = {
        name: field.sentences.replace("null", "None").replace("Omitted", "None") or _values(field)
        for name, (_, field) in described(thing).items()
    }
    lines = [f"- `{name}`: {text}" for name, text in told.items() if text]
    return ["**Attributes**", "", *lines, ""] if lines else []


def _values(field: Field) -> str:
    """Return the list of the values that a field can have; "" if it is not limited to some."""
    values = (field.limits or {}).get("enum", ())
    return f"one of {', '.join(f'`{each}`' for each in values)}." if values else ""


def _members(thing: type) -> list[tuple[str, Any]]:
    """Return the documented public methods and properties of the class and of our base classes."""
    found = []
    for name in dir(thing):
        each = inspect.getattr_static(thing, name)
        described = isinstance(each, FunctionType | property | classmethod | staticmethod) and inspect.getdoc(each)
        if not name.startswith("_") and described:
            found.append((name, each if isinstance(each, property) else getattr(thing, name)))
    return found


def _signature(thing: Any, width: int = 100) -> str:
    """Return the parameters, one on each line if all together are wider than `width`."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    given = [each for name, each in signature.parameters.items() if name != "self"]
    if inspect.isclass(thing) and thing.__module__.startswith("taproof.contract."):
        # The annotations contain the descriptions, which follow below. A `TypedDict` has no signature of its own.
        kinds, defaults = get_type_hints(thing), {each.name: each.default for each in given}
        keyword, none = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        given = [
            inspect.Parameter(name, keyword, default=defaults.get(name, none), annotation=kind)
            for name, kind in kinds.items()
        ]
    signature = signature.replace(parameters=given)
    text = _readable(str(signature)).removesuffix(" -> None")
    if len(text) <= width:
        return text
    lines: list[str] = []
    before = None
    for each in given:
        if each.kind is each.KEYWORD_ONLY and before not in {each.KEYWORD_ONLY, each.VAR_POSITIONAL}:
            lines.append("*")
        lines.append(_readable(str(each)))
        before = each.kind
    return "\n".join(["(", *(f"    {line}," for line in lines), f"){text.rpartition(')')[2]}"])


def _readable(signature: str) -> str:
    """Return a signature as a person would write it: no modules before names, no quotes around types."""
    text = re.sub(r"\b(?:typing|collections\.abc|datetime|taproof(?:\.\w+)*)\.(?=\w)", "", signature)
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text).replace("NoneType", "None").replace("'", '"')
    return re.sub(r"<factory>|<object object at 0x[0-9a-f]+>|<[\w .-]+>", "…", text)


def _prose(docstring: str) -> str:
    """Convert a docstring to Markdown: its sections become lists."""
    lines: list[str] = []
    section = ""
    # The specification is an internal document of the maintainers.
    for line in re.sub(r"\s*\((?:service-spec|contract)\.md[^)]*\)", "", docstring).splitlines():
        title = line.strip().removesuffix(":")
        if line.endswith(":") and title in _SECTIONS and not line.startswith(" "):
            section = title
            lines += ["", f"**{title}**", ""]
        elif section and re.match(r" {4}\S", line):
            name, colon, rest = line.strip().partition(": ")
            item = f"- `{name}`: {rest}" if colon and section != "Returns" else f"- {line.strip()}"
            lines.append(item)
        elif section and not line.strip():
            lines.append("")
        elif section and line.startswith(" "):
            lines.append(f"  {line.strip()}")
        else:
            section = ""
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"
