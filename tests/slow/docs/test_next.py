"""docs/how-to/nextjs.md: its files are a Next.js application, built without settings, that signs a user in once."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.docs.blocks import ROOT, block_of
from tests.e2e.conftest import StartService, wait_for_server
from tests.ports import free_port
from tests.slow.docs.walk import environment_of

PAGE = "how-to/nextjs.md"
SDK = ROOT / "sdk/js"
FILES = {
    "lib/sessions.js": ("js", "export async function startSession"),
    "app/auth/taproof/route.js": ("js", "taproofSignIn"),
    "app/auth/taproof/sign-out/route.js": ("js", "taproofSignOut"),
    "app/layout.jsx": ("jsx", "RootLayout"),
    "app/page.jsx": ("jsx", "<TaproofButton"),
    "app/members/page.jsx": ("jsx", "redirect"),
    "app/members/sign-out.jsx": ("jsx", "use client"),
}
NEXT = ["node", "node_modules/next/dist/bin/next"]
WITHOUT = os.environ | {"NEXT_TELEMETRY_DISABLED": "1"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page's files with a copy of the package, built without the settings."""
    place = tmp_path_factory.mktemp("next")
    text = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in FILES)
    assert len(FILES) == text.count("```js\n") + text.count("```jsx\n"), "The page has a file that is not built here."
    written = {name: block_of(PAGE, *block).text for name, block in FILES.items()}
    for each in [SDK / "package.json", *SDK.glob("src/**/*.js"), *SDK.glob("dist/cjs/**/*.js*")]:
        written[f"node_modules/taproof/{each.relative_to(SDK)}"] = each.read_text(encoding="utf-8")
    for name, content in written.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(content, encoding="utf-8")
    for each in (SDK / "node_modules").iterdir():
        (place / "node_modules" / each.name).symlink_to(each)
    (place / "package.json").write_text('{"dependencies": {}}', encoding="utf-8")  # `npm install` writes no more.
    done = subprocess.run(
        [*NEXT, "build", "--webpack"],
        cwd=place,
        env=WITHOUT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@contextmanager
def running(directory: Path, mode: str, given: dict[str, str]) -> Iterator[str]:
    """Run `next dev` or `next start` with the settings, and yield its address once its first page answers."""
    port = free_port()
    address, output = f"http://127.0.0.1:{port}", directory / f"output-{mode}"
    with output.open("wb") as written:
        process = subprocess.Popen(
            [*NEXT, mode, "--hostname", "127.0.0.1", "--port", str(port), *(["--webpack"] if mode == "dev" else [])],
            cwd=directory,
            env=WITHOUT | {name: value for name, value in given.items() if name.startswith("TAPROOF_")},
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    try:
        wait_for_server(process, address, output)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def test_the_application(built: Path, start_service: StartService) -> None:
    """A proof opens the members' page, and only for that session; another site is refused; sign-out ends it."""
    given = environment_of(start_service())
    proof = {"proof": given["PROOF"]}
    own, foreign = {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "cross-site"}
    with running(built, "start", given) as address:
        sign_in, sign_out = f"{address}/auth/taproof?next=/members", f"{address}/auth/taproof/sign-out"
        button = httpx.get(address).text
        assert given["TAPROOF_PROJECT_ID"] in button
        assert given["TAPROOF_WEBHOOK_SECRET"] not in button
        assert httpx.get(f"{address}/members").is_redirect
        assert httpx.post(sign_in, json=proof, headers=foreign).status_code == 403
        answer = httpx.post(sign_in, json=proof, headers=own)
        assert (answer.status_code, answer.json()) == (200, {"location": "/members"})
        session = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        assert "Welcome, <!-- -->Ada" in httpx.get(f"{address}/members", headers=session).text
        assert httpx.post(sign_in, json=proof, headers=own).status_code == 401
        assert httpx.post(sign_in, json=proof, headers=own | session).json() == {"location": "/members"}
        assert httpx.post(sign_out, json={}, headers=own | session).json() == {"location": "/"}
        assert httpx.get(f"{address}/members", headers=session).is_redirect


def test_the_commands(built: Path, start_service: StartService) -> None:
    """The page's command prints the webhook secret, and `next dev` serves the page with it."""
    given = environment_of(start_service())
    secret = subprocess.run(
        ["bash", "-euc", block_of(PAGE, "bash").text + 'printf %s "$TAPROOF_WEBHOOK_SECRET"'],
        env=os.environ | given | {"TAPROOF_WEBHOOK_SECRET": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert secret == given["TAPROOF_WEBHOOK_SECRET"]
    assert block_of(PAGE, "console", "next dev").text == "$ npx next dev\n"
    with running(built, "dev", given) as address:
        assert given["TAPROOF_PROJECT_ID"] in httpx.get(address, timeout=60).text
        own = {"Sec-Fetch-Site": "same-origin"}  # The route is compiled at its first request.
        answer = httpx.post(f"{address}/auth/taproof", json={"proof": "x"}, headers=own, timeout=60)
        assert answer.status_code == 401
