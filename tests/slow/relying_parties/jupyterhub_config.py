"""A relying party: JupyterHub with the configuration of docs/how-to/oidc/jupyterhub.md, on its own ports.

Start it with `jupyterhub -f` in a directory of its own. Users stay on the hub's home page, because no notebook server
is needed to see who is signed in. `PROXY` is the command of configurable-http-proxy.
"""

import json
import os
import shlex
from pathlib import Path
from typing import Any

from jupyterhub.utils import random_port
from tests.docs.blocks import block_of
from tests.slow.relying_parties.pages import fingerprint

c = get_config()  # type: ignore[name-defined] # noqa: F821 — traitlets provides it.
port = int(os.environ["PORT"]) or random_port()
text = block_of("how-to/oidc/jupyterhub.md", "python").text
assert text.count("127.0.0.1:8000") == 2
Path("page.py").write_text(text.replace("127.0.0.1:8000", f"127.0.0.1:{port}"), "utf-8")
load_subconfig("page.py", str(Path.cwd()))  # type: ignore[name-defined] # noqa: F821 — as above.


def report(_authenticator: object, _handler: object, signed_in: dict[str, Any]) -> dict[str, Any]:
    """Print the signed-in user, because the hub shows neither the name nor the tokens."""
    state = signed_in["auth_state"]
    tokens = {each: fingerprint(state["token_response"][each]) for each in ("access_token", "id_token")}
    print(json.dumps({"sub": signed_in["name"], "name": state["oauth_user"]["name"], **tokens}), flush=True)
    return signed_in


c.GenericOAuthenticator.post_auth_hook = report
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{random_port()}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{random_port()}"
c.ConfigurableHTTPProxy.command = shlex.split(os.environ["PROXY"])
c.JupyterHub.redirect_to_server = False
print(json.dumps({"port": port}), flush=True)
