// taproof/next: the route handlers, called with Next.js's own NextRequest. tests/slow/sdk_js/test_node_next.py calls them in a
// real application.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NextRequest } from "next/server.js";

import { MemoryGuard } from "../src/server/index.js";
import { taproofSignIn, taproofSignOut } from "../src/server/next.js";
import { makeProof, PROJECT, SECRET } from "./signing.js";

/** @typedef {any} Any */

const SITE = "https://shop.example.com";

/** @param {unknown} body @param {Record<string, string>} [headers] @param {string} [path] */
const request = (body, headers = {}, path = "/auth/taproof") =>
  new NextRequest(SITE + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

/** @param {object} [options] */
function endpoint(options = {}) {
  /** @type {Any[]} */
  const started = [];
  const given = {
    projectId: PROJECT,
    webhookSecret: SECRET,
    guard: new MemoryGuard(),
    startSession: (/** @type {Any} */ user) => void started.push(user),
    ...options,
  };
  return { started, POST: taproofSignIn(given).POST };
}

test("a proof starts a session, once", async () => {
  const { POST, started } = endpoint();
  const proof = makeProof();
  const answer = await POST(request({ proof }));
  assert.deepEqual([answer.status, await answer.json()], [200, { location: "/" }]);
  assert.equal(answer.headers.get("cache-control"), "no-store");
  assert.deepEqual(started.map(({ signedInAt, proofDigest, ...user }) => user), [
    { messengerId: "1001", messengerName: "Ada <b>", messengerUsername: "ada" },
  ]);
  assert.equal((await POST(request({ proof }))).status, 401);
  assert.equal(started.length, 1);
});

test("startSession is given the phone number where there is one", async () => {
  const { POST, started } = endpoint();
  await POST(request({ proof: makeProof({ messenger_phone: "+4915123456789" }) }));
  await POST(request({ proof: makeProof() }));
  assert.deepEqual(started.map((user) => user.messengerPhone), ["+4915123456789", undefined]);
});

test("a proof that is sent again is told where to go by the session that it began, and by no other", async () => {
  /** @type {Map<string | null, Any>} */
  const sessions = new Map();
  const startSession = (/** @type {Any} */ user) => void sessions.set("sid=1", user);
  const currentUser = async (/** @type {Any} */ asked) => sessions.get(asked.headers.get("Cookie")) ?? null;
  const { POST } = endpoint({ startSession, currentUser });
  const proof = makeProof();
  assert.equal((await POST(request({ proof }))).status, 200);
  const again = await POST(request({ proof }, { Cookie: "sid=1" }, "/auth/taproof?next=/orders"));
  assert.deepEqual([again.status, await again.json()], [200, { location: "/orders" }]);
  sessions.set("sid=2", { ...sessions.get("sid=1"), proofDigest: "another" });
  sessions.set("sid=3", { ...sessions.get("sid=1"), proofDigest: undefined });
  for (const Cookie of ["sid=2", "sid=3", "sid=4"]) {
    assert.equal((await POST(request({ proof }, { Cookie }))).status, 401, Cookie);
  }
});

test("a body without an end is answered 413, and not read on", async () => {
  let [pulled, cancelled] = [0, false];
  const body = new ReadableStream({
    pull(controller) {
      if ((pulled += 65_536) > 33_554_432) controller.close();
      else controller.enqueue(Buffer.alloc(65_536, "a"));
    },
    cancel: () => void (cancelled = true),
  });
  const { headers } = request("");
  const endless = new NextRequest(`${SITE}/auth/taproof`, /** @type {Any} */ ({ method: "POST", headers, body, duplex: "half" }));
  assert.equal((await endpoint().POST(endless)).status, 413);
  assert.ok(cancelled);
  assert.ok(pulled < 8_388_608, `${pulled} bytes were read`);
});

test("the session's cookie may come with the answer", async () => {
  const startSession = async () => new Headers([["Set-Cookie", "a=1; HttpOnly"], ["Set-Cookie", "b=2"]]);
  const answer = await endpoint({ startSession }).POST(request({ proof: makeProof() }));
  assert.deepEqual(answer.headers.getSetCookie(), ["a=1; HttpOnly", "b=2"]);
});

test("options may come at the first request, once: a build has no secret", async () => {
  let asked = 0;
  const guard = new MemoryGuard();
  const { POST } = taproofSignIn(() => {
    asked += 1;
    return { projectId: PROJECT, webhookSecret: SECRET, guard, startSession: () => null };
  });
  assert.equal(asked, 0);
  const proof = makeProof();
  assert.equal((await POST(request({ proof }))).status, 200);
  assert.equal((await POST(request({ proof }))).status, 401);
  assert.equal(asked, 1);
  await assert.rejects(taproofSignIn(() => /** @type {Any} */ ({})).POST(request({ proof })), TypeError);
});

test("an account can be refused, and what startSession throws is the framework's", async () => {
  const refused = await endpoint({ startSession: async () => false }).POST(request({ proof: makeProof() }));
  assert.equal(refused.status, 403);
  const startSession = () => { throw new Error("away"); };
  await assert.rejects(endpoint({ startSession }).POST(request({ proof: makeProof() })), /away/);
});

for (const [what, headers, status] of /** @type {[string, Record<string, string>, number][]} */ ([
  ["another site", { "Sec-Fetch-Site": "cross-site" }, 403],
  ["a form", { "Content-Type": "text/plain" }, 403],
  ["a program", { "Sec-Fetch-Site": "" }, 403],
  ["an old browser elsewhere", { "Sec-Fetch-Site": "", Origin: "https://evil.example" }, 403],
  ["an old browser", { "Sec-Fetch-Site": "", Origin: SITE }, 200],
  ["an old browser behind a proxy", { "Sec-Fetch-Site": "", Origin: "https://a.example", "X-Forwarded-Host": "a.example" }, 200],
  ["an old browser on plain HTTP", { "Sec-Fetch-Site": "", Origin: "http://a.example", "X-Forwarded-Host": "a.example" }, 403],
])) {
  test(`${what} is answered ${status}, at the sign-in and the sign-out`, async () => {
    const { POST, started } = endpoint();
    assert.equal((await POST(request({ proof: makeProof() }, headers))).status, status);
    assert.equal(started.length, status === 200 ? 1 : 0);
    let ended = 0;
    const out = await taproofSignOut({ endSession: () => void (ended += 1) }).POST(request({}, headers));
    assert.equal(out.status, status);
    assert.equal(ended, status === 200 ? 1 : 0);
  });
}

for (const [body, status] of /** @type {[Any, number][]} */ ([
  ["", 400],
  ["{", 400],
  [{ proof: 1 }, 400],
  [{ proof: "a".repeat(40_000) }, 413],
  [{ proof: makeProof({ exp: 1 }) }, 401],
])) {
  test(`${JSON.stringify(body).slice(0, 30)} is answered ${status}`, async () => {
    const { POST, started } = endpoint();
    const answer = await POST(request(body));
    assert.equal(answer.status, status);
    assert.deepEqual(Object.keys(/** @type {Any} */ (await answer.json())), ["error"]);
    assert.deepEqual(started, []);
  });
}

test("where the page goes next is a page of this site", async () => {
  const { POST } = endpoint({ afterSignIn: "/home" });
  const to = async (/** @type {string} */ query) =>
    (/** @type {Any} */ (await (await POST(request({ proof: makeProof() }, {}, `/auth/taproof${query}`))).json())).location;
  assert.equal(await to("?next=/orders"), "/orders");
  assert.equal(await to("?next=//evil.example"), "/home");
  assert.equal(await to("?next=/.//evil.example"), "/home");
  assert.equal(await to(""), "/home");
});

test("what is missing is told when the application starts", () => {
  for (const missing of ["projectId", "webhookSecret", "guard", "startSession"]) {
    assert.throws(() => endpoint({ [missing]: undefined }), TypeError, missing);
  }
  assert.throws(() => taproofSignOut(/** @type {Any} */ ({})), TypeError);
});
