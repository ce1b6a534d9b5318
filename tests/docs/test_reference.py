"""The reference is complete: each route, command, option, setting, error, metric, state and name."""

import inspect
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html import escape
from typing import Any, get_args

import pytest
import typer
from prometheus_client import CollectorRegistry
from scripts.docs_reference import DOCS, PAGES, openapi

import taproof
from taproof.cli.main import commands
from taproof.config.options import variable
from taproof.config.settings import OPTIONS
from taproof.contract.session import SignInStatus
from taproof.core.deliveries import AttemptOutcome
from taproof.core.errors import API_ERRORS
from taproof.core.session_state import TRANSITIONS
from taproof.http.metrics import Metrics, TapRefusal

SDK = DOCS.parent / "sdk/js"


def page(name: str) -> str:
    return (DOCS / "reference" / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return the text below a heading, up to the next heading of the same depth."""
    depth = heading.partition(" ")[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{len(depth)}}} |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, heading
    return found[1]


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    """Every generated page is up to date. If not: .venv/bin/python -m scripts.docs_reference."""
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name]().rstrip("\n") + "\n"


def test_every_route_is_told_of_whole() -> None:
    """Each operation has its parameters, the fields of its body, its answers and the code of each error."""
    document, text = openapi(), page("api.md")

    def resolve(node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            target: Any = document
            for key in node["$ref"].removeprefix("#/").split("/"):
                target = target[key]
            node = target
        return node

    assert len(document["paths"]) > 15
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            told = section(text, f"### {operation['summary']}")
            assert told.startswith(f"\n`{method.upper()} {path}`\n")
            names = [each["name"] for each in operation.get("parameters", [])]
            bodies = [operation["requestBody"]] if "requestBody" in operation else []
            answers = {status: resolve(each) for status, each in operation["responses"].items()}
            for content in [*bodies, answers["200"]]:
                schema = resolve(content["content"].get("application/json", {"schema": {}})["schema"])
                for one in schema.get("oneOf", [schema]):
                    names += resolve(one).get("properties", {})
            assert [name for name in names if f"| `{name}` |" not in told] == [], path
            for status, answer in answers.items():
                assert f"**{status}**" in told
                if status != "200":
                    codes = re.findall(r"^`(\w+)`:", answer["description"], re.MULTILINE)
                    assert codes
                    assert [code for code in codes if f"- **{status}** `{code}`" not in told] == [], path


def test_every_error_code_is_told_of() -> None:
    """Each error code has its status, and the sentence that says what to do."""
    text = page("errors.md")
    for error in API_ERRORS:
        (line,) = re.findall(rf"^\| {error.status} \| `{error.code}` \|.*$", text, re.MULTILINE)
        assert escape(error.sentence, quote=False) in line
        assert error.meaning
        assert escape(error.meaning, quote=False) in line


def test_every_setting_is_told_of() -> None:
    """The page lists all settings, and no other, in the order of --help, with variable, default and meaning."""
    rows = re.findall(r"^\| `(--[\w-]+)[^`]*`<br>`(\w+)` \| ([^|]*) \| (.*) \|$", page("settings.md"), re.MULTILINE)
    assert {flag: name for flag, name, *_ in rows} == {each.flag: variable(name) for name, each in OPTIONS.items()}
    for (flag, _, default, meaning), option in zip(rows, OPTIONS.values(), strict=True):
        assert flag == option.flag
        assert default == (option.default or ("" if option.metavar else "off"))
        assert option.help.replace("|", "\\|") in meaning


def test_every_command_is_told_of() -> None:
    """Every command has all of its arguments and options, with their variables."""
    text = page("cli.md")
    found: list[str] = []

    def walk(command: Any, path: str) -> None:
        for name, each in getattr(command, "commands", {}).items():
            walk(each, f"{path} {name}")
        if not hasattr(command, "commands"):
            found.append(path)
            told = section(text, f"## {path}")
            for parameter in command.params:
                if parameter.param_type_name == "argument":
                    assert f"`{parameter.metavar}`" in told or f"`[{parameter.metavar}]`" in told, path
                elif parameter.name != "help":
                    names = [each for each in (*parameter.opts, *parameter.secondary_opts) if each.strip()]
                    assert all(f"`{each}" in told for each in names), path
                    assert not parameter.envvar or f"`{parameter.envvar}`" in told

    walk(typer.main.get_command(commands), "taproof")
    assert re.findall(r"^## (taproof .+)$", text, re.MULTILINE) == found


def test_every_metric_is_told_of() -> None:
    """The page lists all metrics, and no other, with their labels and label values."""
    registry = CollectorRegistry()
    Metrics(registry, "0.0.0")
    text = page("metrics.md")
    rows = dict(re.findall(r"^\| `(taproof_\w+)` \| ([^|]*?) ?\|", text, re.MULTILINE))
    exposed = {}
    for metric in registry.collect():
        if metric.name.startswith("taproof"):
            suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
            exposed[metric.name + suffix] = {label for sample in metric.samples for label in sample.labels}
    assert rows.keys() == exposed.keys()
    for name, labels in exposed.items():
        told = set(re.findall(r"`(\w+)`", rows[name]))
        # A metric with labels has no sample until it is counted, so its labels are not checked here.
        assert labels <= told, name
    assert all(f"| `{value}` |" in text for value in (*get_args(AttemptOutcome), *get_args(TapRefusal)))


def test_every_state_is_told_of_and_drawn() -> None:
    """The table equals the one in the code; the picture has a box for each state and an arrow for each transition."""
    text = page("session-states.md")
    picture = (DOCS / "images/session-states.svg").read_text(encoding="utf-8")
    for state in get_args(SignInStatus):
        assert f"| `{state}` |" in text
        assert f">{state}</text>" in picture
    rows = re.findall(r"^\| `(\w+)` \| [^|`]+ \| `(\w+)` \|$", text, re.MULTILINE)
    assert rows == [(source, target) for (source, _), target in TRANSITIONS.items()]
    moves = {(source, target) for (source, _), target in TRANSITIONS.items()}
    assert picture.count('<path d="M') == len(moves) + 1  # And the arrowhead.


def test_every_name_of_the_python_sdk_is_told_of() -> None:
    """The page lists functions and classes with every parameter, and errors with their base class."""
    text = page("python-sdk.md")
    for name in taproof.__all__:
        thing = getattr(taproof, name)
        if inspect.isclass(thing) and issubclass(thing, Exception):
            assert f"| `{name}` | `{thing.__mro__[1].__name__}` |" in text
            continue
        told = section(text, f"### {name}")
        if inspect.isfunction(thing):
            assert all(parameter in told for parameter in inspect.signature(thing).parameters)
        elif inspect.isclass(thing):
            if name == "AsyncClient":  # Its methods are those of Client, as the page says.
                told += section(text, "### Client")
            public = [member for member, each in vars(thing).items() if inspect.isfunction(each) and member[0] != "_"]
            assert [member for member in public if f"- `{member}(" not in told] == [], name


def test_every_name_of_the_javascript_sdk_is_told_of() -> None:
    """The first table lists each export with its import; each option of `signIn` and of the checks has a row."""
    text = page("javascript-sdk.md")
    node = shutil.which("node")
    assert node is not None, "Install node: the package is asked for its names."
    rows = dict(re.findall(r"^\| `(taproof[/\w-]*)` \| (.*?) \| ", text, re.MULTILINE))
    exports = json.loads((SDK / "package.json").read_text(encoding="utf-8"))["exports"]
    modules = {name.replace(".", "taproof", 1): paths["default"] for name, paths in exports.items()}
    assert modules.keys() == rows.keys()
    for name, told in rows.items():
        program = f"console.log(JSON.stringify(Object.keys(await import({modules[name]!r}))))"
        done = subprocess.run(
            [node, "--input-type=module", "-e", program],
            cwd=SDK,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        names = json.loads(done.stdout)
        assert names
        for each in names:
            is_error = each.startswith(("Proof", "Webhook")) or each in {"SignInError", "TaproofApiError"}
            assert f"`{each}`" in (text if is_error else told) or f"### {each}" in text, f"{name}: {each}"
    for file, typedef in (("sign_in.js", "SignInOptions"), ("server/proof.js", "ProofOptions")):
        source = (SDK / "src" / file).read_text(encoding="utf-8")
        comment = source.partition(f"@typedef {{object}} {typedef}\n")[2].partition("@typedef")[0].partition("*/")[0]
        options = re.findall(r"@property \{.*\} \[?(\w+)", comment)
        assert options
        assert [option for option in options if f"| `{option}` |" not in text] == []


def test_every_json_output_is_described() -> None:
    """The schema has a definition for each command with --json, and for no other."""

    def walk(command: Any, path: str) -> Iterator[str]:
        for name, each in getattr(command, "commands", {}).items():
            if hasattr(each, "commands"):
                yield from walk(each, f"{path}{name}-")
            elif any("--json" in option.opts for option in each.params):
                yield path + name

    every = set(walk(typer.main.get_command(commands), ""))
    defined = json.loads((DOCS / "reference/cli.schema.json").read_text(encoding="utf-8"))["$defs"]
    assert every == {name for name in defined if name.islower() and name != "time"}
