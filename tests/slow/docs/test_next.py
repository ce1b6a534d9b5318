"""docs/how-to/nextjs.md: its files are a Next.js application, built without settings, that signs a user in once."""

import os
import signal
import subprocess
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
}
NEXT = ["node", "node_modules/next/dist/bin/next"]
WITHOUT = os.environ | {"NEXT_TELEMETRY_DISABLED": "1"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page's files with a copy of the package, built without the settings."""
    place = tmp_path_factory.mktemp("next")
    text = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in FILES)
    written = {name: block_of(PAGE, *block).text for name, block in FILES.items()}
    for each in [SDK / "package.json", *(SDK / "src").rglob("*.js")]:
        written[f"node_modules/taproof/{each.relative_to(SDK)}"] = each.read_text(encoding="utf-8")
    for name, content in written.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(content, encoding="utf-8")
    for each in (SDK / "node_modules").iterdir():
        (place / "node_modules" / each.name).symlink_to(each)
    (place / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
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


def test_the_application(built: Path, start_service: StartService) -> None:
    """A proof opens the members' page, and only for that session; another site is refused; sign-out ends it."""
    given = environment_of(start_service())
    proof = {"proof": given["PROOF"]}
    port = free_port()
    address, output = f"http://127.0.0.1:{port}", built / "output"
    with output.open("wb") as written:
        process = subprocess.Popen(
            [*NEXT, "start", "--hostname", "127.0.0.1", "--port", str(port)],
            cwd=built,
            env=WITHOUT | {name: value for name, value in given.items() if name.startswith("TAPROOF_")},
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    try:
        wait_for_server(process, address, output)
        own, foreign = {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "cross-site"}
        sign_in, sign_out = f"{address}/auth/taproof?next=/members", f"{address}/auth/taproof/sign-out"
        button = httpx.get(address).text
        assert given["TAPROOF_PROJECT_ID"] in button
        assert given["TAPROOF_WEBHOOK_SECRET"] not in button
        assert httpx.get(f"{address}/members").is_redirect
        assert httpx.post(sign_in, json=proof, headers=foreign).status_code == 403
        answer = httpx.post(sign_in, json=proof, headers=own)
        assert (answer.status_code, answer.json()) == (200, {"location": "/members"}), output.read_text()
        session = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        assert "Welcome, <!-- -->Ada" in httpx.get(f"{address}/members", headers=session).text
        assert httpx.post(sign_in, json=proof, headers=own).status_code == 401
        assert httpx.post(sign_in, json=proof, headers=own | session).json() == {"location": "/members"}
        assert httpx.post(sign_out, json={}, headers=own | session).json() == {"location": "/"}
        assert httpx.get(f"{address}/members", headers=session).is_redirect
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
