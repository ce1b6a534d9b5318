"""A relying party: the Starlette application of docs/how-to/oidc/authlib.md, and an address that shows its session."""

import importlib
import json
import os
import secrets
import socket
from pathlib import Path

import uvicorn
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from tests.docs.blocks import block_of
from tests.slow.relying_parties.pages import page


async def shown(request: Request) -> Response:
    user = request.session.get("user")
    return HTMLResponse(page(user and {"sub": user["id"], "name": user["name"]}))


if __name__ == "__main__":
    os.environ["SESSION_SECRET"] = secrets.token_hex()
    Path("shop.py").write_text(block_of("how-to/oidc/authlib.md", "python", "starlette_client").text, "utf-8")
    app = importlib.import_module("shop").app
    app.add_route("/shown", shown)
    listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    uvicorn.Server(uvicorn.Config(app)).run(sockets=[listener])
