"""The browser SDK as the service serves it: for any origin, cached, and with an integrity hash."""

import base64
import gzip
import hashlib
from collections.abc import AsyncIterator
from importlib.metadata import version
from importlib.resources import files

import httpx
import pytest
from tests.api.conftest import assert_error

from taproof.http.sdk_files import SdkFiles

VERSION = version("taproof")
RELEASE = f"/sdk/{VERSION}/taproof.js"
RELEASED = files("taproof.http") / "static" / "sdk" / VERSION
BUNDLE = (RELEASED / "taproof.js").read_bytes()


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(SdkFiles(VERSION))
    async with httpx.AsyncClient(transport=transport, base_url="https://taproof.test") as client:
        yield client


@pytest.mark.parametrize("path", ["/sdk/taproof.js", RELEASE, "/sdk/mini-app.js", f"/sdk/{VERSION}/mini-app.js"])
async def test_a_page_of_any_origin_loads_the_script(http: httpx.AsyncClient, path: str) -> None:
    """A module of another origin needs CORS and a JavaScript type, without cookies and without type guessing."""
    found = await http.get(path)
    assert (found.status_code, found.content) == (200, (RELEASED / path.rpartition("/")[2]).read_bytes())
    assert found.headers["content-type"] == "text/javascript; charset=utf-8"
    assert found.headers["access-control-allow-origin"] == "*"
    assert found.headers["cross-origin-resource-policy"] == "cross-origin"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert (await http.head(path)).content == b""
    assert_error(await http.post(path), 405, "method_not_allowed")


async def test_a_release_never_changes_and_the_newest_one_may(http: httpx.AsyncClient) -> None:
    """A path with a version is cached forever; the plain path is requested again after minutes."""
    assert (await http.get(RELEASE)).headers["cache-control"] == "public, max-age=31536000, immutable"
    newest = await http.get("/sdk/taproof.js")
    assert newest.headers["cache-control"] == "public, max-age=300"
    unchanged = await http.get("/sdk/taproof.js", headers={"If-None-Match": newest.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["etag"] == newest.headers["etag"]
    other = await http.get("/sdk/taproof.js", headers={"If-None-Match": '"0"'})
    assert other.status_code == 200


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("", False), ("identity", False), ("gzip;q=0", False), ("xgzip", False)],
)
async def test_it_is_compressed_where_that_is_accepted(
    http: httpx.AsyncClient, *, accepted: str, compressed: bool
) -> None:
    """Compression saves two thirds of the bytes, and `Vary` tells caches about it."""
    async with http.stream("GET", RELEASE, headers={"Accept-Encoding": accepted}) as found:
        raw = b"".join([part async for part in found.aiter_raw()])
    assert found.headers["vary"] == "Accept-Encoding"
    assert ("content-encoding" in found.headers) is compressed
    assert (gzip.decompress(raw) if compressed else raw) == BUNDLE


async def test_the_newest_release_has_its_hash(http: httpx.AsyncClient) -> None:
    """The hash is that of the bytes at the given path (W3C Subresource Integrity)."""
    about = await http.get("/sdk/taproof.json")
    assert about.headers["access-control-allow-origin"] == "*"
    told = about.json()
    assert (told["version"], told["path"]) == (VERSION, RELEASE)
    body = (await http.get(told["path"])).content
    assert told["integrity"] == f"sha384-{base64.b64encode(hashlib.sha384(body).digest()).decode()}"


@pytest.mark.parametrize("path", ["/sdk", "/sdk/", "/sdk/9.9.9/taproof.js", "/sdk/../errors.py", f"{RELEASE}/"])
async def test_anything_else_is_404(http: httpx.AsyncClient, path: str) -> None:
    """Other paths are not found, and the sentence says where the newest script is named."""
    assert_error(await http.get(path), 404, "not_found")
