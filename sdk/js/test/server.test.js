// taproof/server beyond the vectors: the guard, the settings, and mistakes of an application in JavaScript.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { MemoryGuard, ProofAlreadyUsed, ProofError, ProofExpired, ProofMalformed, settingsFrom, verifyProof, verifyWebhook } from "../src/server/index.js";
import { makeProof, PROJECT, SECRET } from "./signing.js";

/** @typedef {any} Any The tests give what no type allows. */

test("without a time and options the machine's clock decides, and any project will do", () => {
  const identity = verifyProof(makeProof(), SECRET);
  assert.equal(identity.messengerId, "1001");
  assert.throws(() => verifyProof(makeProof({ exp: 1 }), SECRET), ProofExpired);
});

test("an identity cannot be changed, and shows no session token in a log", () => {
  const identity = verifyProof(makeProof(), SECRET);
  assert.throws(() => Object.assign(identity, { messengerId: "1" }), TypeError);
  assert(!inspect(identity).includes(identity.sessionToken));
  assert(!Object.keys({ ...identity }).includes("sessionToken"));
});

test("a project id that is undefined is a missing setting, not a wildcard", () => {
  assert.throws(() => verifyProof(makeProof(), SECRET, { projectId: undefined }), TypeError);
  assert.equal(verifyProof(makeProof(), SECRET, { projectId: null }).projectId, PROJECT);
});

for (const name of ["leeway", "now"]) {
  for (const value of ["5", null, [], 5n, true]) {
    test(`${name} ${inspect(value)} is refused, since adding it would not be adding`, () => {
      assert.throws(() => verifyProof(makeProof(), SECRET, /** @type {Any} */ ({ [name]: value })), TypeError);
    });
  }
}

test("the secret key in place of the webhook secret is told apart", () => {
  assert.throws(() => verifyProof(makeProof(), "sk_abc"), /This is the secret key/);
});

test("what somebody has put on Object.prototype is no claim", (t) => {
  Object.assign(Object.prototype, { messenger_username: "root" });
  t.after(() => Reflect.deleteProperty(Object.prototype, "messenger_username"));
  assert.throws(() => verifyProof(makeProof({ messenger_username: undefined }), SECRET), ProofMalformed);
});

test("a phone number that somebody has put on Object.prototype is none", (t) => {
  Object.assign(Object.prototype, { messenger_phone: "+4915123456789" });
  t.after(() => Reflect.deleteProperty(Object.prototype, "messenger_phone"));
  assert.equal(verifyProof(makeProof({ messenger_phone: undefined }), SECRET).messengerPhone, null);
});

test("a tolerance that is no number is refused", () => {
  assert.throws(() => verifyWebhook(Buffer.from("{}"), {}, SECRET, /** @type {Any} */ ({ tolerance: "5" })), TypeError);
});

for (const body of ["{}", { id: "evt_1" }, null, undefined, [1]]) {
  test(`a body that is ${inspect(body)} and not bytes is the application's mistake`, () => {
    assert.throws(() => verifyWebhook(/** @type {Any} */ (body), {}, SECRET), /received bytes/);
  });
}

for (const headers of [null, undefined, [["webhook-id", "evt_1"]], "x", { "webhook-id": ["evt_1"] }, { "webhook-id": 1 }]) {
  test(`headers that are ${inspect(headers)} are the application's mistake`, () => {
    assert.throws(() => verifyWebhook(Buffer.from("{}"), /** @type {Any} */ (headers), SECRET), TypeError);
  });
}

test("the Headers of a Web-standard Request will do", () => {
  const headers = new Headers({ "X-Service-Signature": "00" });
  assert.throws(() => verifyWebhook(Buffer.from("{}"), headers, SECRET), /matches no given secret/);
});

test("a guard that answers at once leaves it all synchronous, and one that promises is waited for", async () => {
  const proof = makeProof();
  const guard = new MemoryGuard();
  assert.equal(verifyProof(proof, SECRET, { guard }).messengerId, "1001");
  assert.throws(() => verifyProof(proof, SECRET, { guard }), ProofAlreadyUsed);

  const slow = { take: async (/** @type {string} */ token, /** @type {number} */ end) => guard.take(token, end) };
  const other = makeProof();
  assert.equal((await verifyProof(other, SECRET, { guard: slow })).messengerId, "1001");
  await assert.rejects(verifyProof(other, SECRET, { guard: slow }), ProofAlreadyUsed);
});

for (const answer of [undefined, null, "OK", 1, {}, Promise.resolve("OK")]) {
  test(`a guard that answers ${inspect(answer)} has let nobody in`, async () => {
    const guard = /** @type {Any} */ ({ take: () => answer });
    await assert.rejects(async () => verifyProof(makeProof(), SECRET, { guard }), ProofAlreadyUsed);
  });
}

test("what a guard throws is no ProofError: the application's store has failed, and nobody is signed in", async () => {
  const guards = [{ take: () => { throw new Error("away"); } }, { take: () => Promise.reject(new Error("away")) }];
  for (const guard of guards) {
    await assert.rejects(
      async () => verifyProof(makeProof(), SECRET, { guard: /** @type {Any} */ (guard) }),
      (error) => error instanceof Error && !(error instanceof ProofError) && error.message === "away",
    );
  }
});

test("a guard remembers for as long as the proof would be accepted, so with the leeway", () => {
  /** @type {number[]} */
  const ends = [];
  const guard = { take: (/** @type {string} */ _, /** @type {number} */ end) => ends.push(end) > 0 };
  verifyProof(makeProof({ iat: 1_000, exp: 1_300 }), SECRET, { guard, now: 1_000, leeway: 10.5 });
  verifyProof(makeProof({ iat: 1_000, exp: 1_300 }), SECRET, { guard, now: 1_000, leeway: Infinity });
  assert.deepEqual(ends, [1_311, 2 ** 53]);
});

test("MemoryGuard keeps no token", (t) => {
  const set = t.mock.method(Map.prototype, "set");
  new MemoryGuard().take("a session token", 1);
  assert(set.mock.callCount() > 0);
  for (const { arguments: given } of set.mock.calls) assert(!String(given[0]).includes("a session token"));
});

test("MemoryGuard forgets what has expired, and nothing at once", () => {
  let now = 1_000;
  const guard = new MemoryGuard({ now: () => now });
  assert.equal(guard.take("first", 1_300), true);
  assert.equal(guard.take("old", 1), true);
  assert.equal(guard.take("old", 1), false);
  now = 1_030;
  assert.equal(guard.take("older", 1), true);
  now = 1_061;
  assert.equal(guard.take("older", 1), false);
  now = 1_300;
  assert.equal(guard.take("first", 1_300), false);
  now = 2_000;
  assert.equal(guard.take("second", 2_300), true);
  assert.equal(guard.size, 1);
});

test("the three settings, several secrets during a rotation, and no secret in a log", () => {
  const other = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
  const settings = settingsFrom({
    TAPROOF_BASE_URL: " http://127.0.0.1:8080/ ",
    TAPROOF_PROJECT_ID: PROJECT,
    TAPROOF_WEBHOOK_SECRET: `${other}, ${SECRET}`,
  });
  assert.equal(settings.baseUrl, "http://127.0.0.1:8080");
  assert.deepEqual(settings.webhookSecret, [other, SECRET]);
  assert(!inspect(settings).includes("whsec_") && !JSON.stringify(settings).includes("whsec_"));
});

test("settings that are wrong are all named in one sentence each, and not shown", () => {
  const names = ["TAPROOF_BASE_URL", "TAPROOF_PROJECT_ID", "TAPROOF_WEBHOOK_SECRET"];
  assert.throws(() => settingsFrom({}), (/** @type {Error} */ error) => names.every((name) => error.message.includes(name)));
  const wrong = {
    TAPROOF_BASE_URL: ["signin.example.com", "https://u:p@signin.example.com", "https://a.b/api", 'https://a"><script>'],
    TAPROOF_PROJECT_ID: ["Shop", "proj_", "proj_a b"],
    TAPROOF_WEBHOOK_SECRET: ["sk_abc", `${SECRET},`, "whsec_"],
  };
  const right = { TAPROOF_BASE_URL: "https://a.b", TAPROOF_PROJECT_ID: PROJECT, TAPROOF_WEBHOOK_SECRET: SECRET };
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values) {
      assert.throws(
        () => settingsFrom({ ...right, [name]: value }),
        (/** @type {Error} */ { message }) => names.every((each) => message.includes(each) === (each === name)) && !message.includes(SECRET),
      );
    }
  }
});
