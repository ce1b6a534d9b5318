// taproof/express in a real Express with express-session, called over real HTTP.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { connect } from "node:net";
import { test } from "node:test";

import express from "express";
import session from "express-session";

import { requireSignedIn, signedIn, taproofExpress } from "../src/server/express.js";
import { MemoryGuard } from "../src/server/index.js";
import { makeProof, PROJECT, SECRET } from "./signing.js";

/** @typedef {any} Any */

/**
 * Start an application and return a function that calls it with the cookie it was last given.
 *
 * @param {import("node:test").TestContext} t
 * @param {object} [options] Further ones of taproofExpress.
 * @param {(app: express.Express) => void} [prepare] Comes before the session.
 */
async function start(t, options = {}, prepare = () => {}) {
  const app = express();
  prepare(app);
  app.use(session({ secret: "a secret of this test", resave: false, saveUninitialized: false }));
  const endpoint = { projectId: PROJECT, webhookSecret: SECRET, guard: new MemoryGuard(), ...options };
  app.use("/auth/taproof", taproofExpress(endpoint));
  app.get("/me", (req, res) => void res.json({ user: signedIn(req), session: { ...req.session, cookie: undefined } }));
  app.get("/plant", (req, res) => {
    Object.assign(req.session, { planted: true });
    res.end(req.sessionID);
  });
  app.get("/members", requireSignedIn("/"), (_, res) => void res.end("members"));
  app.get("/api", requireSignedIn(), (_, res) => void res.end("api"));
  app.use((/** @type {Any} */ error, /** @type {Any} */ _req, /** @type {Any} */ res, /** @type {Any} */ _next) => {
    res.status(500).json({ error: error.message });
  });
  const server = app.listen(0, "127.0.0.1");
  t.after(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const site = { origin: `http://127.0.0.1:${port}`, cookie: "", call };

  /** @param {string} path @param {RequestInit} [init] */
  async function call(path, init = {}) {
    const headers = { Cookie: site.cookie, ...init.headers };
    const response = await fetch(site.origin + path, { redirect: "manual", ...init, headers });
    site.cookie = response.headers.get("set-cookie")?.split(";")[0] ?? site.cookie;
    return response;
  }
  return site;
}

/** @param {unknown} body @param {Record<string, string>} [headers] @returns {RequestInit} */
const post = (body, headers = {}) => ({
  method: "POST",
  headers: { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", ...headers },
  body: typeof body === "string" || body instanceof Uint8Array ? /** @type {Any} */ (body) : JSON.stringify(body),
});

/** @param {Response} response @returns {Promise<Any>} */
const json = (response) => response.json();

test("a proof signs in, once; the session holds the user and neither proof nor token; sign-out ends it", async (t) => {
  const site = await start(t);
  const proof = makeProof();
  const answer = await site.call("/auth/taproof", post({ proof }));
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("cache-control"), "no-store");
  assert.deepEqual(await json(answer), { location: "/" });
  const { user, session } = await json(await site.call("/me"));
  assert.deepEqual({ ...user, signedInAt: 0 }, { messengerId: "1001", messengerName: "Ada <b>", messengerUsername: "ada", signedInAt: 0 });
  const token = JSON.parse(Buffer.from(proof.split(".")[1], "base64url").toString()).session_token;
  const proofDigest = createHash("sha256").update(token).digest("base64url");
  assert.deepEqual(session, { taproof: { ...user, proofDigest } });
  assert.equal(await (await site.call("/members")).text(), "members");

  const own = site.cookie;
  site.cookie = "";
  const again = await site.call("/auth/taproof", post({ proof }));
  assert.equal(again.status, 401);
  assert.match((await json(again)).error, /used before/);
  site.cookie = own;

  const out = await site.call("/auth/taproof/sign-out", post({}));
  assert.deepEqual([out.status, await json(out)], [200, { location: "/" }]);
  assert.equal((await json(await site.call("/me"))).user, null);
});

test("the session holds the phone number where there is one, and the next one nothing of it", async (t) => {
  const site = await start(t);
  await site.call("/auth/taproof", post({ proof: makeProof({ messenger_phone: "+4915123456789" }) }));
  const { user, session } = await json(await site.call("/me"));
  assert.equal(user.messengerPhone, "+4915123456789");
  assert.equal(session.taproof.messengerPhone, "+4915123456789");
  await site.call("/auth/taproof", post({ proof: makeProof() }));
  assert(!("messengerPhone" in (await json(await site.call("/me"))).user));
});

test("a proof that is sent again is told where to go by the session that it began, and by no other", async (t) => {
  const site = await start(t);
  const proof = makeProof();
  await site.call("/auth/taproof", post({ proof }));
  const own = site.cookie;
  const before = await json(await site.call("/me"));
  const again = await site.call("/auth/taproof?next=/orders", post({ proof }));
  assert.deepEqual([again.status, await json(again)], [200, { location: "/orders" }]);
  assert.equal(again.headers.get("set-cookie"), null);
  assert.deepEqual(await json(await site.call("/me")), before);
  // Another session, of the same user even.
  site.cookie = "";
  await site.call("/auth/taproof", post({ proof: makeProof() }));
  assert.equal((await site.call("/auth/taproof", post({ proof }))).status, 401);
  // A proof that does not hold is looked at as ever, and so is one for a session that is over.
  site.cookie = own;
  assert.equal((await site.call("/auth/taproof", post({ proof: `${proof.slice(0, -4)}AAAA` }))).status, 401);
  assert.equal((await site.call("/auth/taproof", post({ proof: makeProof() }))).status, 200);
  assert.equal((await site.call("/auth/taproof", post({ proof }))).status, 401);
  await site.call("/auth/taproof/sign-out", post({}));
  site.cookie = own;
  assert.equal((await site.call("/auth/taproof", post({ proof }))).status, 401);
});

test("the session of before is not gone on with: its id and what was in it may be somebody else's", async (t) => {
  const site = await start(t);
  const before = await (await site.call("/plant")).text();
  const planted = site.cookie;
  await site.call("/auth/taproof", post({ proof: makeProof() }));
  assert.notEqual(site.cookie, planted);
  const { session, user } = await json(await site.call("/me"));
  assert.equal(session.planted, undefined);
  assert.equal(user.messengerId, "1001");
  site.cookie = planted;
  assert.equal((await json(await site.call("/me"))).user, null);
  assert.notEqual(before, "");
});

for (const [what, headers] of /** @type {[string, Record<string, string>][]} */ ([
  ["of a form", { "Content-Type": "application/x-www-form-urlencoded" }],
  ["of a form that is sent as text", { "Content-Type": "text/plain" }],
  ["without a type", { "Content-Type": "" }],
  ["of another site", { "Sec-Fetch-Site": "cross-site" }],
  ["of another host of the same site", { "Sec-Fetch-Site": "same-site" }],
  ["of nobody", { "Sec-Fetch-Site": "none" }],
  ["of an old browser on another site", { "Sec-Fetch-Site": "", Origin: "https://evil.example" }],
  ["of an old browser on another port", { "Sec-Fetch-Site": "", Origin: "http://127.0.0.1:1" }],
  ["of an old browser in a sandboxed frame", { "Sec-Fetch-Site": "", Origin: "null" }],
  ["of a program", { "Sec-Fetch-Site": "" }],
])) {
  test(`a request ${what} signs nobody in or out`, async (t) => {
    const site = await start(t);
    const proof = makeProof();
    const wrong = await site.call("/auth/taproof", post({ proof }, headers));
    assert.equal(wrong.status, 403);
    assert.equal(typeof (await json(wrong)).error, "string");
    // It was refused before the proof was looked at, which is still good.
    assert.equal((await site.call("/auth/taproof", post({ proof }))).status, 200);
    assert.equal((await site.call("/auth/taproof/sign-out", post({}, headers))).status, 403);
    assert.notEqual((await json(await site.call("/me"))).user, null);
  });
}

test("an old browser on a page of this application signs in by its Origin", async (t) => {
  const site = await start(t);
  const headers = { "Sec-Fetch-Site": "", Origin: site.origin, "Content-Type": "Application/JSON; charset=utf-8" };
  assert.equal((await site.call("/auth/taproof", post({ proof: makeProof() }, headers))).status, 200);
});

test("behind a proxy the public address is what a trusted proxy says, and nobody else", async (t) => {
  const headers = {
    "Sec-Fetch-Site": "",
    Origin: "https://shop.example.com",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "shop.example.com:443",
  };
  const trusting = await start(t, {}, (app) => app.set("trust proxy", "loopback"));
  assert.equal((await trusting.call("/auth/taproof", post({ proof: makeProof() }, headers))).status, 200);
  const plain = await start(t);
  assert.equal((await plain.call("/auth/taproof", post({ proof: makeProof() }, headers))).status, 403);
  const noScheme = { ...headers, Origin: "http://shop.example.com", "X-Forwarded-Host": "shop.example.com" };
  assert.equal((await plain.call("/auth/taproof", post({ proof: makeProof() }, noScheme))).status, 403);
});

for (const [what, body, status] of /** @type {[string, Any, number][]} */ ([
  ["nothing", "", 400],
  ["no JSON", "proof", 400],
  ["a list", "[]", 400],
  ["no proof", {}, 400],
  ["a proof that is no string", { proof: { toString: "x" } }, 400],
  ["two proofs", '{"proof": "a", "proof": "b"}', 400],
  ["not UTF-8", Buffer.from([0xff]), 400],
  ["too much", { proof: "a".repeat(40_000) }, 413],
  ["very much too much", "a".repeat(3_000_000), 413],
  ["a bad proof", { proof: "a.b.c" }, 401],
  ["a proof of another project", { proof: makeProof({ project_id: "proj_9" }) }, 401],
  ["a proof that is over", { proof: makeProof({ exp: 1 }) }, 401],
  ["a forged proof", { proof: makeProof({}, "whsec_AAAA") }, 401],
])) {
  test(`${what} is answered ${status}, with a sentence, and signs nobody in`, async (t) => {
    const site = await start(t);
    const answer = await site.call("/auth/taproof", post(body));
    assert.equal(answer.status, status);
    assert.deepEqual(Object.keys(await json(answer)), ["error"]);
    assert.equal((await json(await site.call("/me"))).user, null);
  });
}

test("a body without an end is answered 413, and not read on", async (t) => {
  /** @type {import("node:net").Socket | undefined} */
  let taken;
  const site = await start(t, {}, (app) => app.use((req, _, next) => (taken = req.socket) && next()));
  const { host, port } = new URL(site.origin);
  const client = connect(Number(port), "127.0.0.1");
  t.after(() => client.destroy());
  let answer = "";
  client.on("data", (data) => (answer += data)).on("error", () => {});
  const closed = new Promise((resolve) => client.once("close", resolve));
  client.write(`POST /auth/taproof HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n`);
  client.write("Sec-Fetch-Site: same-origin\r\nTransfer-Encoding: chunked\r\n\r\n");
  const chunk = Buffer.from(`10000\r\n${"a".repeat(65_536)}\r\n`);
  for (let sent = 0; sent < 512 && !client.destroyed; sent += 1) {
    await Promise.race([closed, new Promise((resolve) => client.write(chunk, resolve))]);
  }
  assert.ok(client.destroyed, "32 MiB were taken");
  await closed;
  assert.ok(/** @type {Any} */ (taken).bytesRead < 8_388_608, `${taken?.bytesRead} bytes were read`);
  assert.match(answer, /^(HTTP\/1.1 413 |$)/);
});

for (const [parser, make] of Object.entries({ json: express.json(), raw: express.raw({ type: "*/*" }), text: express.text({ type: "*/*" }) })) {
  test(`a body that express.${parser} has read before is taken too`, async (t) => {
    const site = await start(t, {}, (app) => app.use(make));
    assert.equal((await site.call("/auth/taproof", post({ proof: makeProof() }))).status, 200);
  });
}

for (const [next, location] of /** @type {[string, string][]} */ ([
  ["?next=/orders%3Fa%3D1", "/orders?a=1"],
  ["?next=//evil.example", "/members"],
  ["?next=https://evil.example", "/members"],
  ["?next=/%5Cevil.example", "/members"],
  ["?next=/%09/evil.example", "/members"],
  ["?next=/.//evil.example/x", "/members"],
  ["?next=/a/..//evil.example", "/members"],
  ["?next=/%252e//evil.example", "/members"],
  ["?next=/%252E./a", "/members"],
  ["?next=/a/%252e%252E/b", "/members"],
  ["?next=/a//b", "/members"],
  ["?next=/..", "/members"],
  ["?next=/.%3Fa", "/members"],
  ["?next=/.%23a", "/members"],
  ["?next=/...//", "/members"],
  ["?next=/.well-known/a..b/.../c.%3Fback=https://a/../b%23//c/.", "/.well-known/a..b/.../c.?back=https://a/../b#//c/."],
  ["?next=/a&next=/b", "/members"],
  ["?next[a]=/b", "/members"],
  ["", "/members"],
])) {
  test(`after ${next || "no next"} the page goes to ${location}`, async (t) => {
    const site = await start(t, { afterSignIn: "/members" });
    assert.deepEqual(await json(await site.call(`/auth/taproof${next}`, post({ proof: makeProof() }))), { location });
  });
}

test("onSignIn is told who signs in, may add to the new session, and is waited for", async (t) => {
  const onSignIn = async (/** @type {Any} */ user, /** @type {Any} */ req) => {
    await null;
    req.session.account = `account of ${user.messengerId}`;
  };
  const site = await start(t, { onSignIn });
  await site.call("/auth/taproof", post({ proof: makeProof() }));
  assert.equal((await json(await site.call("/me"))).session.account, "account of 1001");
});

for (const [what, onSignIn, status] of /** @type {[string, () => unknown, number][]} */ ([
  ["refuses the account", async () => false, 403],
  ["throws", () => { throw new Error("The database is away."); }, 500],
])) {
  test(`nobody is signed in when onSignIn ${what}`, async (t) => {
    const site = await start(t, { onSignIn });
    assert.equal((await site.call("/auth/taproof", post({ proof: makeProof() }))).status, status);
    assert.equal((await json(await site.call("/me"))).user, null);
  });
}

test("other methods are told what is right, other paths are left to the application", async (t) => {
  const site = await start(t);
  const wrong = await site.call("/auth/taproof");
  assert.deepEqual([wrong.status, wrong.headers.get("allow")], [405, "POST"]);
  assert.equal((await site.call("/auth/taproof/other", post({}))).status, 404);
});

test("who is not signed in is sent to the page with the button, or answered 401", async (t) => {
  const site = await start(t);
  const sent = await site.call("/members?tab=1");
  assert.deepEqual([sent.status, sent.headers.get("location")], [303, "/?next=%2Fmembers%3Ftab%3D1"]);
  const api = await site.call("/api");
  assert.deepEqual([api.status, await json(api)], [401, { error: "Sign in first." }]);
});

test("without express-session the sentence says so, and the proof is not used up", async (t) => {
  const app = express();
  app.use(taproofExpress({ projectId: PROJECT, webhookSecret: SECRET, guard: { take: () => assert.fail("asked") } }));
  app.use((/** @type {Any} */ error, /** @type {Any} */ _req, /** @type {Any} */ res, /** @type {Any} */ _next) => {
    res.status(500).end(error.message);
  });
  const server = app.listen(0, "127.0.0.1");
  t.after(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const answer = await fetch(`http://127.0.0.1:${port}/`, post({ proof: makeProof() }));
  assert.match(await answer.text(), /Put express-session before/);
});

for (const missing of ["projectId", "webhookSecret", "guard"]) {
  test(`without ${missing} the application does not start`, () => {
    const options = { projectId: PROJECT, webhookSecret: SECRET, guard: new MemoryGuard(), [missing]: undefined };
    assert.throws(() => taproofExpress(/** @type {Any} */ (options)), TypeError);
  });
}
