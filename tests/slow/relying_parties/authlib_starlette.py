"""A relying party: Authlib's Starlette client, with PKCE, client_secret_basic, and the name from userinfo."""

import json
import os
import secrets
import socket

import uvicorn
from authlib.integrations.starlette_client import OAuth
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from tests.slow.relying_parties.pages import fingerprint, page

oauth = OAuth()
oauth.register(
    "provider",
    server_metadata_url=f"{os.environ['OIDC_ISSUER']}/.well-known/openid-configuration",
    client_id=os.environ["OIDC_CLIENT_ID"],
    client_secret=os.environ["OIDC_CLIENT_SECRET"],
    client_kwargs={"scope": "openid profile", "code_challenge_method": "S256"},
)


async def home(request: Request) -> Response:
    return HTMLResponse(page(request.session.get("user")))


async def sign_in(request: Request) -> Response:
    answer: Response = await oauth.provider.authorize_redirect(request, request.url_for("callback"))
    return answer


async def callback(request: Request) -> Response:
    token = await oauth.provider.authorize_access_token(request)
    told = await oauth.provider.userinfo(token=token)
    assert told["sub"] == token["userinfo"]["sub"]
    tokens = {each: fingerprint(token[each]) for each in ("access_token", "id_token")}
    request.session["user"] = {"sub": told["sub"], "name": told["name"], **tokens}
    return RedirectResponse("/", 303)


async def sign_out(request: Request) -> Response:
    request.session.clear()
    return RedirectResponse("/", 303)


app = Starlette(
    routes=[
        Route("/", home),
        Route("/sign-in", sign_in),
        Route("/callback", callback),
        Route("/sign-out", sign_out, methods=["POST"]),
    ],
    middleware=[Middleware(SessionMiddleware, secret_key=secrets.token_hex(), session_cookie="starlette")],
)

if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    uvicorn.Server(uvicorn.Config(app)).run(sockets=[listener])
