"""docs/how-to/nextjs.md: its route handlers sign in, once, and out, given Web-standard requests as by Next.js."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.docs.blocks import block_of
from tests.docs.walk import environment_of, install_package
from tests.e2e.conftest import StartService

PAGE = "how-to/nextjs.md"
CALLS = """
import { POST as signIn, sessions } from "./sign-in.mjs";
import { POST as signOut } from "./sign-out.mjs";

const call = (path, body, headers = {}) => new Request(`https://shop.example.com${path}`, {
  method: "POST",
  headers: { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", ...headers },
  body: JSON.stringify(body),
});
const shown = [];
const show = async (response) => {
  const cookie = response.headers.get("Set-Cookie");
  shown.push([response.status, await response.json(), cookie !== null, sessions.size]);
  return cookie?.split(";")[0];
};
const proof = process.env.PROOF;
await show(await signIn(call("/auth/taproof", { proof }, { "Sec-Fetch-Site": "cross-site" })));
const cookie = await show(await signIn(call("/auth/taproof?next=/orders", { proof })));
await show(await signIn(call("/auth/taproof", { proof })));
await show(await signOut(call("/auth/taproof/sign-out", {}, { Cookie: `a=b; ${cookie}` })));
console.log(JSON.stringify(shown));
"""


def test_the_route_handlers(start_service: StartService, tmp_path: Path) -> None:
    """Another site's request is refused, the proof starts one session, a second use none, sign-out ends it."""
    service = start_service()
    given = environment_of(service)
    install_package(tmp_path)
    (tmp_path / "sign-in.mjs").write_text(block_of(PAGE, "js", "taproofSignIn").text, encoding="utf-8")
    (tmp_path / "sign-out.mjs").write_text(block_of(PAGE, "js", "taproofSignOut").text, encoding="utf-8")
    (tmp_path / "calls.mjs").write_text(CALLS, encoding="utf-8")
    node = shutil.which("node")
    assert node is not None, "Install node: the page's JavaScript is run with it."
    settings = {
        "TAPROOF_BASE_URL": service.base_url,
        "TAPROOF_PROJECT_ID": given["PROJECT_ID"],
        "TAPROOF_WEBHOOK_SECRET": given["WEBHOOK_SECRET"],
        "PROOF": given["PROOF"],
    }
    done = subprocess.run(
        [node, "calls.mjs"],
        cwd=tmp_path,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    foreign, first, again, out = json.loads(done.stdout)
    assert foreign[0] == 403
    assert first == [200, {"location": "/orders"}, True, 1]
    assert (again[0], again[2:]) == (401, [False, 1])
    assert out == [200, {"location": "/"}, True, 0]
