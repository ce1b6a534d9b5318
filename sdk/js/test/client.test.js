// `Client` of taproof/server, and sign-ins that a server starts, against a stand-in for the service over real HTTP.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { test } from "node:test";
import { inspect } from "node:util";

import express from "express";
import session from "express-session";

import { signedIn, startSignIn, taproofExpress } from "../src/server/express.js";
import { Client, MemoryGuard, TaproofApiError, verifyProof } from "../src/server/index.js";
import { taproofSignIn } from "../src/server/next.js";
import { makeProof, PROJECT, SECRET } from "./signing.js";

/** @typedef {any} Any */

const KEY = "sk_0123456789abcdef";
const TOKEN = "T".repeat(43);
const LINK = `https://t.me/shop_bot?start=${TOKEN}`;
const STARTED = { session_token: TOKEN, deeplink: LINK, expires_at: "2026-11-20T22:54:03.127Z" };
const confirmed = () => ({
  status: "confirmed", messenger_id: "1001", messenger_name: "Ada", messenger_username: null, proof: makeProof(),
  confirmed_at: "2026-11-20T22:44:03.127Z",
});

/** @param {import("node:test").TestContext} t @param {import("node:http").RequestListener} listener */
async function serve(t, listener) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  t.after(() => (server.closeAllConnections(), server.close()));
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
}

/**
 * Start a stand-in that gives the answers one after the other, each a body or `[status, body, headers]`.
 *
 * @param {import("node:test").TestContext} t
 * @param {Any[]} answers
 */
async function start(t, ...answers) {
  /** @type {Any[]} */
  const calls = [];
  const baseUrl = await serve(t, async (req, res) => {
    let text = "";
    for await (const chunk of req) text += chunk;
    calls.push([req.method, req.url, req.headers.authorization, JSON.parse(text)]);
    const answer = answers.shift();
    const [status, body, headers] = Array.isArray(answer) ? answer : [200, answer, {}];
    if (status === 0) return;
    res.writeHead(status, { "Content-Type": "application/json", ...headers });
    res.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  return { client: new Client({ baseUrl: `${baseUrl}/`, secretKey: KEY, timeout: 5 }), calls };
}

test("a sign-in is started, read with the return code, and cancelled, with the secret key", async (t) => {
  const answers = [STARTED, { status: "pending", hint: "return" }, confirmed(), { status: "used" }];
  const { client, calls } = await start(t, ...answers);
  const signIn = await client.createSession({ returnUrl: "https://shop.example.com/in" });
  const { codeVerifier, ...rest } = signIn;
  assert.deepEqual(rest, {
    sessionToken: TOKEN, deeplink: LINK, expiresAt: STARTED.expires_at, matchCode: null, returnRequired: false,
  });
  const pending = await client.verifySession(signIn, { hints: true, seenHint: "opened", wait: 1 });
  assert.deepEqual(pending, { status: "pending", hint: "return" });
  const result = /** @type {Any} */ (await client.verifySession(signIn, { returnCode: "code" }));
  assert.equal(verifyProof(result.proof, SECRET).messengerId, "1001");
  const identity = { messengerId: "1001", messengerName: "Ada", messengerUsername: null, messengerPhone: null };
  assert.deepEqual({ ...result, proof: "" }, { status: "confirmed", identity, proof: "", confirmedAt: "2026-11-20T22:44:03.127Z" });
  assert.equal(await client.cancelSession(signIn), "used");
  const challenge = createHash("sha256").update(codeVerifier ?? "").digest("base64url");
  const read = { session_token: TOKEN, code_verifier: codeVerifier };
  assert.deepEqual(calls, [
    ["/generate", { code_challenge: challenge, code_challenge_method: "S256", return_url: "https://shop.example.com/in" }],
    ["/verify", { ...read, wait: 1, hints: true, seen_hint: "opened" }],
    ["/verify", { ...read, return_code: "code" }],
    ["/cancel", { session_token: TOKEN }],
  ].map(([path, body]) => ["POST", `/api/v1${path}`, `Bearer ${KEY}`, body]));
});

test("another part of the application may have the verifier, and the number and the policy are passed on", async (t) => {
  const { client, calls } = await start(t, { ...STARTED, match_code: "42", return_required: true }, { status: "pending" });
  const signIn = await client.createSession({ codeChallenge: "c" });
  assert.deepEqual([signIn.codeVerifier, signIn.matchCode, signIn.returnRequired], [null, "42", true]);
  assert.deepEqual(await client.verifySession(signIn), { status: "pending", hint: null });
  assert.deepEqual(calls.map((each) => each[3]), [{ code_challenge: "c", code_challenge_method: "S256" }, { session_token: TOKEN }]);
});

for (const [what, answer, expected] of /** @type {[string, Any, Any][]} */ ([
  ["a refusal", [400, { error: "No." }, { "X-Error-Code": "same_device_required" }], [400, "same_device_required", null, /^No\.$/]],
  ["a rate limit", [429, { error: "Slow down." }, { "Retry-After": "7" }], [429, "", 7, /^Slow down/]],
  ["an echo of secrets", [400, { error: `${KEY} ${TOKEN} x` }], [400, "", null, /^… … x$/]],
  ["a page of a proxy", [502, "<h1>Bad Gateway</h1>"], [502, "", null, /baseUrl/]],
  ["a page with status 200", [200, "<h1>Hello</h1>"], [200, "", null, /baseUrl/]],
  ["another object", {}, [200, "", null, /baseUrl/]],
  ["too long an answer", [200, `{"session_token": "${"x".repeat(40_000)}"}`], [200, "", null, /baseUrl/]],
  ["a redirect", [302, "", { Location: "http://127.0.0.1:9/" }], [null, "", null, /cannot be reached/]],
])) {
  test(`${what} is a TaproofApiError with status, code and sentence`, async (t) => {
    const { client, calls } = await start(t, answer);
    await assert.rejects(client.createSession(), (/** @type {Any} */ error) => {
      assert(error instanceof TaproofApiError);
      assert.deepEqual([error.name, error.status, error.code, error.retryAfter], ["TaproofApiError", ...expected.slice(0, 3)]);
      assert.match(error.message, expected[3]);
      return true;
    });
    assert.equal(calls.length, 1);
  });
}

test("a service that does not answer is given up, and no error or log shows the key", async (t) => {
  const { client } = await start(t);
  const hanging = await serve(t, () => {});
  const hurried = new Client({ baseUrl: hanging, secretKey: KEY, timeout: 0.01 });
  await assert.rejects(hurried.cancelSession({ sessionToken: TOKEN }), /no answer in time/);
  const nobody = new Client({ baseUrl: "http://127.0.0.1:9", secretKey: KEY });
  await assert.rejects(nobody.cancelSession({ sessionToken: TOKEN }), (/** @type {Any} */ error) => !inspect(error).includes(KEY));
  assert(!inspect(client, { showHidden: true }).includes(KEY));
});

for (const options of [
  { baseUrl: "http://signin.example.com", secretKey: KEY },
  { baseUrl: "https://u:p@signin.example.com", secretKey: KEY },
  { baseUrl: "https://signin.example.com?x", secretKey: KEY },
  { baseUrl: "http://127.0.0.1.evil.example", secretKey: KEY },
  { baseUrl: undefined, secretKey: KEY },
  { baseUrl: "https://signin.example.com", secretKey: `${KEY}\r\nX: y` },
  { baseUrl: "https://signin.example.com", secretKey: "whsec_abc" },
  { baseUrl: "https://signin.example.com", secretKey: KEY, timeout: "5" },
]) {
  test(`${inspect(options)} is a mistake of the application`, () => {
    assert.throws(() => new Client(/** @type {Any} */ (options)), (error) => error instanceof TypeError && !error.message.includes(KEY));
  });
}

/** @param {Any} body @returns {RequestInit} */
const post = (body, headers = {}) => ({
  method: "POST",
  headers: { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", ...headers },
  body: JSON.stringify(body),
});

test("Express: the page that the messenger opened signs in by its return code, in this session only", async (t) => {
  const refused = { error: "The secret key is wrong." };
  const { client, calls } = await start(t, STARTED, { status: "pending" }, [503, { error: "Away." }], [401, refused], confirmed());
  const logged = t.mock.method(console, "error", () => {});
  const app = express();
  app.use(session({ secret: "a secret of this test", resave: false, saveUninitialized: false }));
  app.use("/auth/taproof", taproofExpress({ projectId: PROJECT, webhookSecret: SECRET, guard: new MemoryGuard(), client }));
  app.post("/begin", async (req, res) => void res.json(await startSignIn(req, client, { returnUrl: "https://shop.example.com/" })));
  app.get("/me", (req, res) => void res.json({ user: signedIn(req)?.messengerId, held: Object.keys(req.session) }));
  const origin = await serve(t, app);
  const begun = await fetch(`${origin}/begin`, post({}));
  assert.deepEqual(await begun.json(), { deeplink: LINK, matchCode: null, expiresAt: STARTED.expires_at });
  let Cookie = begun.headers.get("set-cookie")?.split(";")[0] ?? "";
  /** @param {string} cookie */
  const send = (cookie) => fetch(`${origin}/auth/taproof`, post({ return_code: "code" }, { Cookie: cookie }));
  assert.equal((await send("")).status, 403); // Another browser.
  assert.equal((await send(Cookie)).status, 401); // A wrong code.
  // The service's sentences are for the operator: they are logged, and the user gets others.
  for (const [status, error] of [
    [503, "The sign-in service cannot be reached. Try again."],
    [401, "This sign-in could not be finished. Start again."],
  ]) {
    const answer = await send(Cookie);
    assert.deepEqual([answer.status, await answer.json()], [status, { error }]);
  }
  assert.deepEqual(logged.mock.calls.map((call) => call.arguments[1]), ["Away.", refused.error]);
  const done = await send(Cookie);
  assert.deepEqual([done.status, await done.json()], [200, { location: "/" }]);
  Cookie = done.headers.get("set-cookie")?.split(";")[0] ?? "";
  const me = await (await fetch(`${origin}/me`, { headers: { Cookie } })).json();
  assert.deepEqual([me.user, me.held.includes("taproofStarted")], ["1001", false]);
  assert.deepEqual(calls.slice(1).map((each) => each[3].return_code), ["code", "code", "code", "code"]);
});

test("Next.js: the sign-in that the server started comes from the application's own session", async (t) => {
  const { client } = await start(t, STARTED, confirmed());
  const started = await client.createSession();
  /** @type {Any} */
  let user = null;
  const options = { projectId: PROJECT, webhookSecret: SECRET, guard: new MemoryGuard(), client };
  const { POST } = taproofSignIn({
    ...options,
    startSession: (given) => void (user = given),
    startedSignIn: (request) => (request.headers.get("Cookie") === "mine" ? started : null),
  });
  const ask = (/** @type {string} */ Cookie) => POST(new Request("https://shop.example.com/x", post({ return_code: "code" }, { Cookie })));
  assert.equal((await ask("theirs")).status, 403);
  assert.equal((await ask("mine")).status, 200);
  assert.equal(user.messengerId, "1001");
  // Without a client, a return code is no proof.
  const plain = taproofSignIn({ ...options, client: undefined, startSession: () => {}, startedSignIn: () => started });
  assert.equal((await plain.POST(new Request("https://shop.example.com/x", post({ return_code: "code" })))).status, 400);
});
