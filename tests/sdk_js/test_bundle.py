"""The service serves exactly the bundle that `sdk/js` builds, and it is small; checks that need no browser."""

import gzip
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from tests.sdk_js.conftest import BUNDLE, LANGUAGES
from tests.sdk_js.qr import expected_modules

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sdk/js"
MINI_APP = BUNDLE.with_name("mini-app.js")
PAGE_SCRIPT = ROOT / "src/taproof/oidc/pages/static/qr_code.js"
BROWSER = list((PACKAGE / "src").glob("*.js"))


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ask(script: str, *arguments: str) -> Any:
    """Run a module in Node, in the package's folder, and return its output as JSON."""
    return json.loads(run("node", "--input-type=module", "-e", script, *arguments))


def test_fresh_build(tmp_path: Path) -> None:
    """The committed scripts, CommonJS files and types equal a fresh build, byte for byte."""
    run("node", "build.mjs", str(tmp_path))
    for script in (BUNDLE, MINI_APP):
        assert (tmp_path / script.name).read_bytes() == script.read_bytes()
    assert (tmp_path / "qr_code.js").read_bytes() == PAGE_SCRIPT.read_bytes()
    run("node", "build_dist.mjs", str(tmp_path / "dist"))
    assert _contents(tmp_path / "dist") == _contents(PACKAGE / "dist"), "Run: cd sdk/js && npm run build"


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_size() -> None:
    """The compressed bundle is under 13 KB, and the script for Mini Apps under 1 KB.

    3.5 KB of it are the return to this browser, the hints, and their texts in ten languages. The sentence for a blocked
    window adds 0.25 KB, and the table of phases and events adds 0.9 KB to the function that it replaced.
    """
    for script, limit in ((BUNDLE, 13_312), (MINI_APP, 1_024)):
        assert len(gzip.compress(script.read_bytes(), 9, mtime=0)) < limit


def test_version() -> None:
    """Package, service and folder have the same version."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert json.loads((PACKAGE / "package.json").read_text("utf-8"))["version"] == version == BUNDLE.parent.name
    assert BUNDLE.read_text("utf-8").startswith(f"/*! Taproof {version}, Apache-2.0 */")


def test_types() -> None:
    """TypeScript finds no error in the package's sources, and the sources for browsers do not disable it."""
    run("node_modules/.bin/tsc", "--noEmit")
    for source in BROWSER:
        assert not re.search(r"@ts-|eslint-disable", source.read_text("utf-8")), source


def test_types_are_checked(tmp_path: Path) -> None:
    """TypeScript finds an added type error, so the test above can be trusted."""
    broken = tmp_path / "sdk"
    shutil.copytree(PACKAGE / "src", broken / "src", ignore=shutil.ignore_patterns("react", "server"))
    shutil.copy(PACKAGE / "tsconfig.json", broken)
    shutil.copy(PACKAGE / "package.json", broken)
    (broken / "node_modules").symlink_to(PACKAGE / "node_modules")
    with (broken / "src/link.js").open("a", encoding="utf-8") as source:
        source.write('linkOf("x").command;\n')
    done = subprocess.run(
        [PACKAGE / "node_modules/.bin/tsc", "--noEmit"], cwd=broken, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "possibly 'null'" in done.stdout


def test_what_is_published(tmp_path: Path) -> None:
    """A package that is packed without other packages and without a build has every file that its exports name."""
    copy = tmp_path / "sdk"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        ["npm", "pack", "--dry-run", "--json", "--offline"],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = json.loads(done.stdout)
    [package] = listed if isinstance(listed, list) else listed.values()
    files = {each["path"] for each in package["files"]}
    named = re.findall(r'": "\./(\S+)"', (PACKAGE / "package.json").read_text("utf-8"))
    assert len(named) > 6 * 5
    assert set(named) <= files
    others = {path for path in files if not path.startswith(("src/", "dist/"))}
    assert others == {"LICENSE", "README.md", "package.json"}


def test_no_way_for_a_script() -> None:
    """The bundle creates no HTML or code from strings, and loads no other file."""
    bundle = BUNDLE.read_text("utf-8")
    for banned in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "import("):
        assert banned not in bundle, banned
    assert not re.search(r"\bimport[ {\"']", bundle)


def test_lock_file_names_no_registry() -> None:
    """The lock file names packages by their hashes, and no registry."""
    lock = (PACKAGE / "package-lock.json").read_text("utf-8")
    assert '"integrity"' in lock
    assert '"resolved"' not in lock
    assert "://" not in re.sub(r'"(url|funding)": "[^"]*"', "", lock)


def test_no_browser() -> None:
    """The package can be imported without a browser, as a framework does when it renders pages on a server."""
    script = "console.log(JSON.stringify(Object.keys(await import(process.argv[1])).sort()))"
    names = ["SignInError", "TaproofButton", "resume", "signIn", "takeReturnCode"]
    assert ask(script, "./src/index.js") == ask(script, str(BUNDLE)) == names


LINKS = {
    "https://t.me/shop_bot?start=a-B_9": "tg://resolve?domain=shop_bot&start=a-B_9",
    "http://127.0.0.1:8080/sandbox/phone?start=abc": None,
    "http://t.me/shop_bot?start=abc": None,
    "https://t.me.evil.example/shop_bot?start=abc": None,
    "https://t.me/shop_bot/app?start=abc": None,
    "https://evil.example/https://t.me/shop_bot?start=abc": None,
}
NO_LINKS = [
    *("", "javascript:alert(1)//?start=a", "data:text/html,x?start=x", "tg://resolve?domain=x&start=y", 7),
    *("https://t.me/bot", "https://t.me/bot?start=", "https://t.me/b?start=a&x=1"),
]


def test_links() -> None:
    """Only a t.me link becomes a link of the app, with nothing but bot and token; an invalid link is refused."""
    script = """
        const { linkOf } = await import("./src/link.js");
        console.log(JSON.stringify(JSON.parse(process.argv[1]).map((each) => linkOf(each))));
    """
    expected: list[Any] = [
        {
            "deeplink": deeplink,
            "appLink": app_link,
            "command": f"/start {deeplink.partition('start=')[2]}",
            "matchCode": None,
            "returnRequired": False,
        }
        for deeplink, app_link in LINKS.items()
    ]
    assert ask(script, json.dumps([*LINKS, *NO_LINKS])) == expected + [None] * len(NO_LINKS)


def test_codes() -> None:
    """The QR codes equal those of a proven encoder at every length; a longer link gets none."""
    texts = [
        ("https://t.me/shop_bot?start=" + "aZ-9_" * 30)[:length] for length in (*range(1, 135, 7), 105, 106, 107, 134)
    ]
    texts += ["https://пример.example/?start=" + "a" * 43]
    script = """
        const { modulesOf } = await import("./src/qr.js");
        console.log(JSON.stringify(JSON.parse(process.argv[1]).map(modulesOf)));
    """
    *codes, none = ask(script, json.dumps([*texts, "x" * 135]))
    assert none is None
    for text, code in zip(texts, codes, strict=True):
        assert code == expected_modules(text), text


def test_all_texts_in_all_languages() -> None:
    """Each language has every text of the button, all of them different; other languages get English."""
    assert len(LANGUAGES) >= 10
    script = """
        globalThis.document = { documentElement: { lang: "" } };
        Object.defineProperty(globalThis, "navigator", { value: { languages: [] } });
        const { speechFor } = await import("./src/texts.js");
        console.log(JSON.stringify(process.argv.slice(1).map((each) => speechFor(each))));
    """
    speeches = ask(script, *LANGUAGES, "tlh", "constructor")
    assert [each["language"] for each in speeches] == [*LANGUAGES, "en", "en"]
    for speech in speeches:
        assert len(set(speech["texts"])) == 26, speech
        assert all(text.strip() == text != "" for text in speech["texts"])
        # Only the text of a match code has a place for it.
        assert [at for at, text in enumerate(speech["texts"]) if "#" in text] == [16], speech


def test_readme_names_what_there_is() -> None:
    """The README names every custom property, attribute, language, event and error code of the browser part."""
    readme = (PACKAGE / "README.md").read_text("utf-8")
    source = "".join(each.read_text("utf-8") for each in BROWSER)
    names = re.findall(r"var\((--taproof-[a-z-]+)", source) + re.findall(r'getAttribute\("([a-z-]+)"\)', source)
    names += [f"taproof-{name}" for name in re.findall(r'#tell\("([a-z-]+)"', source)]
    names += re.findall(r'SignInError\(\s*"([a-z_]+)"', source)
    assert len(set(names)) > 14
    for name in [*names, *LANGUAGES]:
        assert f"`{name}`" in readme, name
