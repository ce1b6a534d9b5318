// The table of a sign-in in the browser, alone: src/machine.js has no input or output.

import assert from "node:assert/strict";
import { test } from "node:test";

import { initial, step, TABLE } from "../src/machine.js";

/** @typedef {any} Any */

const MINUTES = 60_000;
const LINK = "https://t.me/shop_bot?start=t0";
const PAGE = "https://shop.example/in";
const SECRETS = { verifier: "v0", challenge: "c0" };

/** @param {string} name @param {object} [changes] @returns {Any} */
const kept = (name, changes) => ({
  token: name,
  deeplink: `https://t.me/shop_bot?start=${name}`,
  verifier: `v-${name}`,
  challenge: `c-${name}`,
  expiresAt: 10 * MINUTES,
  ...changes,
});
const OWN = kept("own");
const ONE = kept("one", { returnCode: "code" });
const TWO = kept("two", { returnCode: "code" });
const PASTED = kept("own", { returnCode: "x" });
const ELSEWHERE = { status: "other_browser", address: `${PAGE}#taproof_return=code` };

/** A state after three requests. @param {string} phase @param {object} [changes] @returns {Any} */
const at = (phase, changes) => ({
  ...initial({ base: "https://signin.example", own: OWN, candidates: [], returnUrl: undefined }),
  ...{ phase, turn: 3, deadline: 10 * MINUTES, told: "pending", hint: "waiting", seconds: 25 },
  ...changes,
});
const NEW = { own: null, returnUrl: `${PAGE}?a=1`, told: "", hint: "", seconds: 0 };
const TRYING = { own: null, candidates: [ONE, TWO], lost: ELSEWHERE, told: "starting", hint: "", seconds: 0 };

/** @param {string} type @param {object} [details] */
const event = (type, details) => ({ type, now: 1_000, time: 1_000, random: 1, away: false, ...details });
/** The service's answer. @param {Any} body @param {object} [details] */
const says = (body, details) => event("answer", { turn: 3, status: 200, body, ...details });
const NO_ANSWER = says(undefined, { status: 0 });
const PENDING = { status: "pending", hint: "waiting" };
const CONFIRMED = { status: "confirmed", messenger_id: "1", messenger_name: "Ada", proof: "p", confirmed_at: "t" };
const CREATED = { session_token: "t0", deeplink: LINK, match_code: "42", return_required: true };
const LINKED = { deeplink: LINK, appLink: "tg://resolve?domain=shop_bot&start=t0", command: "/start t0" };
const CHOICES = { matchCode: "42", returnRequired: true, returns: true };
const MADE = { token: "t0", ...LINKED, ...CHOICES, ...SECRETS, expiresAt: 1_000 + 10 * MINUTES };
/** @param {string} code */
const refuses = (code) => says({ error: "No." }, { status: 400, code });
const NINE = { now: 9 * MINUTES, time: 9 * MINUTES };
const LATE = { now: 60 * MINUTES, time: 60 * MINUTES };

/** The request for a sign-in. @param {Any} own @param {number} [wait] @param {string} [hint] */
const verify = (own, wait = 25, hint = "waiting") => ["ask", "verify", {
  session_token: own.token,
  code_verifier: own.verifier,
  return_code: own.returnCode,
  wait,
  hints: true,
  seen_hint: hint,
}, wait];
/** How a sign-in ends, as effects. @param {Any} result @param {Any} [own] @param {boolean} [isUsed] */
const ends = (result, own = OWN, isUsed = false) => [["clear", own, isUsed], ["resolve", result]];
const VERIFY = "ask verify";
const GENERATE = "ask generate";

/**
 * Name, state, events, last phase, and all effects: in full, or as the effect's name and first value.
 *
 * @type {[string, Any, Any[], string, Any[]][]}
 */
const ROWS = [
  ["A new sign-in asks for a link", at("starting", NEW), [event("ready", { secrets: SECRETS })], "asking", [
    ["onStatus", "starting"],
    ["ask", "generate", { code_challenge: "c0", code_challenge_method: "S256", return_url: `${PAGE}?a=1` }, 0],
  ]],
  ["A resumed one shows its link once", at("starting", { told: "", hint: "" }),
    [event("ready"), says(PENDING, { turn: 4 })], "pausing",
    [["onStatus", "pending"], ["onHint", "waiting"], "onLink", VERIFY, ["pause", 2_000]]],
  ["It has the time that was left", at("starting", { own: kept("own", { expiresAt: MINUTES }) }),
    [event("ready"), { ...NO_ANSWER, turn: 4, now: 2 * MINUTES }], "over",
    [["onHint", "waiting"], "onLink", VERIFY, "clear", ["resolve", { status: "expired" }]]],
  ["A return code is tried with the first candidate", at("starting", { ...TRYING, told: "" }), [event("ready")], "asking", [
    ["keepCode", "code"], ["onStatus", "starting"], VERIFY,
  ]],
  ["Nothing is asked on a phone that shows the messenger", at("starting"), [event("ready", { away: true })], "away", [
    ["onHint", "waiting"], "onLink", ["pause"],
  ]],
  ["A code that is pasted before the start is sent", at("starting"), [event("pasted", { code: "x" }), event("ready")],
    "asking", [["keep", PASTED], ["onHint", "waiting"], "onLink", verify(PASTED, 0)]],
  ["The link is kept, shown and asked for", at("asking", { ...NEW, secrets: SECRETS, failures: 2 }), [says(CREATED)],
    "asking", [["keep", MADE], ["share", MADE], ["onStatus", "pending"], ["onHint", "waiting"], "onLink", verify(MADE)]],
  ["A link that no page may open is no answer", at("asking", NEW), [says({ ...CREATED, deeplink: "javascript:1" })],
    "pausing", [["pause", 1_000]]],
  ["A page that is not accepted is tried without its query", at("asking", NEW), [refuses("return_url_not_allowed")],
    "asking", [["ask", "generate", { code_challenge: undefined, code_challenge_method: "S256", return_url: PAGE }, 0]]],
  ["Then without a page", at("asking", { ...NEW, returnUrl: PAGE }), [refuses("return_url_not_allowed")], "asking", [
    ["ask", "generate", { code_challenge: undefined, code_challenge_method: "S256", return_url: undefined }, 0],
  ]],
  ["A refusal ends it", at("asking"), [refuses("project_paused")], "over", ["clear", "reject"]],
  ["An error page ends only what has no session", at("asking", NEW), [says(undefined, { status: 404 })], "over", [
    "clear", "reject",
  ]],
  ["A held answer is followed by the next request", at("asking"), [says(PENDING, { now: 25_000 })], "asking", [VERIFY]],
  ["An early one by a pause", at("pausing"),
    [event("alarm", { turn: 3, now: 20_000 }), says(PENDING, { turn: 4, now: 30_000 })], "pausing",
    [VERIFY, ["pause", 2_000]]],
  ["A new hint by the next request", at("asking"), [says({ ...PENDING, hint: "opened" })], "asking", [
    ["onHint", "opened"], VERIFY,
  ]],
  ["The return has its own time", at("asking"),
    [says({ ...PENDING, hint: "return" }, NINE), { ...NO_ANSWER, now: 13 * MINUTES, turn: 4 }], "pausing",
    [["keep", { ...OWN, returnCode: undefined, expiresAt: 14 * MINUTES }], ["onHint", "return"], VERIFY, ["pause", 1_000]]],
  ["But only once", at("asking", { hint: "return" }), [says({ ...PENDING, hint: "return" })], "pausing", ["pause"]],
  ["A foreign code is dropped", at("asking", { own: ONE }), [says({ ...PENDING, hint: "opened" })], "asking", [
    ["keep", { ...ONE, returnCode: undefined }], ["onHint", "opened"], VERIFY,
  ]],
  ["The messenger's Cancel ends it", at("asking"), [says({ status: "cancelled" })], "over", ends({ status: "cancelled" })],
  ["The first failure is not told", at("asking"), [NO_ANSWER], "pausing", [["pause", 1_000]]],
  ["The second one is", at("asking", { failures: 1 }), [NO_ANSWER], "pausing", [["onStatus", "retrying"], ["pause", 2_000]]],
  ["It is told once", at("asking", { failures: 1 }),
    [NO_ANSWER, event("alarm", { turn: 3 }), { ...NO_ANSWER, turn: 4 }], "pausing",
    [["onStatus", "retrying"], ["pause", 2_000], verify(OWN, 0), ["pause", 4_000]]],
  ["The service is back", at("asking", { failures: 2, told: "retrying", seconds: 0 }),
    [says({ ...PENDING, hint: "opened" }), event("alarm", { turn: 3 })], "asking",
    [["onStatus", "pending"], ["onHint", "opened"], ["pause", 2_000], verify(OWN, 25, "opened")]],
  ["A short request is followed by a pause", at("pausing", { failures: 1 }),
    [event("alarm", { turn: 3 }), says({ ...PENDING, hint: "opened" }, { turn: 4 })], "pausing",
    [VERIFY, ["onHint", "opened"], ["pause", 2_000]]],
  ["Pauses have a limit", at("asking", { failures: 30 }), [NO_ANSWER], "pausing", ["onStatus", ["pause", 15_000]]],
  ["The service can request a longer one", at("asking"),
    [says({ error: "Slow down." }, { status: 429, retryAfter: "60" })], "held", [["pause", 60_000]]],
  ["Which looking does not end", at("held"), [event("look")], "held", []],
  ["After the pause it asks", at("pausing"), [event("alarm", { turn: 3 })], "asking", [VERIFY]],
  ["Looking ends a pause", at("pausing"), [event("look")], "asking", [VERIFY]],
  ["Leaving for the messenger ends a request", at("asking"), [event("look", { away: true })], "away", [["pause"]]],
  ["But not that for a link", at("asking", NEW), [event("look", { away: true })], "asking", []],
  ["Coming back asks", at("away"), [event("look")], "asking", [VERIFY]],
  ["Another tab's end is asked for", at("pausing"), [event("changed")], "asking", [VERIFY]],
  ["Another tab's result is not", at("pausing"), [event("used")], "over", ends({ status: "used" })],
  ["A code of another sign-in is tried with the next", at("asking", TRYING), [says(PENDING)], "asking", [VERIFY]],
  ["One that is none's ends it", at("asking", { ...TRYING, candidates: [ONE] }), [says(PENDING)], "over",
    ends(ELSEWHERE, null)],
  ["Unless the tab has its own", at("asking", { ...TRYING, candidates: [ONE], own: OWN }), [says(PENDING)], "asking", [
    ["forgetCode"], ["onStatus", "pending"], ["onHint", "waiting"], "onLink", VERIFY,
  ]],
  ["A candidate's end is the result if no other fits", at("asking", TRYING),
    [says({ status: "expired" }), says(undefined, { status: 404, body: { error: "No." }, turn: 4 })], "over",
    [VERIFY, ...ends({ status: "expired" }, null)]],
  ["A candidate's result becomes the tab's own", at("asking", TRYING), [says(CONFIRMED), event("accepted", { result: "it" })],
    "over", [["keep", ONE], ["forgetCode"], "confirm", ...ends("it", ONE, true)]],
  ["The result waits for onConfirmed", at("confirmed"), [event("accepted", { result: "it" })], "over", ends("it", OWN, true)],
  ["An error of onConfirmed is the result", at("confirmed"), [event("thrown", { error: "it" })], "over", [
    ["clear", OWN, true], ["reject", "it"],
  ]],

  // What an attacker, or a bad day, sends.
  ["A late answer after the end", at("asking"), [event("abort"), says(CONFIRMED), event("ready"), event("alarm")], "over", [
    ["cancel", OWN], ...ends({ status: "aborted" }),
  ]],
  ["An end after the result", at("confirmed"), [event("abort"), event("used"), says({ status: "cancelled" })], "confirmed", []],
  ["Two polls: only the newer one's answer counts", at("asking"), [event("look"), says(CONFIRMED), NO_ANSWER], "asking", [
    VERIFY,
  ]],
  ["The same answer twice", at("asking"), [says(PENDING), says(PENDING)], "pausing", [["pause", 2_000]]],
  ["An alarm of an ended pause", at("pausing"), [event("look"), event("alarm", { turn: 3 })], "asking", [VERIFY]],
  ["A sleep through the expiry: asks once more", at("pausing"), [event("alarm", { turn: 3, ...LATE })], "asking", [VERIFY]],
  ["…and gives up without an answer", at("pausing"),
    [event("alarm", { turn: 3, ...LATE }), { ...NO_ANSWER, turn: 4, ...LATE }], "over", [VERIFY, ...ends({ status: "expired" })]],
  ["…or if the service still says pending", at("away"), [event("look", LATE), says(PENDING, { turn: 4, ...LATE })], "over", [
    VERIFY, ...ends({ status: "expired" }),
  ]],
  ["…but takes a result", at("away"), [event("look", LATE), says(CONFIRMED, { turn: 4, ...LATE })], "confirmed", [
    VERIFY, "confirm",
  ]],
  ["No pause without time", at("asking", { deadline: 1_000 }), [NO_ANSWER], "over", ends({ status: "expired" })],
  ["A local clock that jumps ends nothing", at("asking"), [says(PENDING, { time: 1e15 })], "pausing", [["pause", 2_000]]],
  ["An answer for an older sign-in", at("asking", TRYING), [says(PENDING), says(CONFIRMED), refuses("x")], "asking", [VERIFY]],
  ["A portal's page instead of an answer loses no code", at("asking", TRYING), [says(undefined)], "pausing", ["pause"]],
  ["Nor does a proxy's", at("asking", TRYING), [says(undefined, { status: 404 })], "pausing", ["pause"]],
  ["A result instead of a link", at("asking", NEW), [says(CONFIRMED)], "pausing", ["pause"]],
  ["A pause without end", at("asking"), [says({}, { status: 503, retryAfter: "1e300" })], "held", [
    ["pause", 10 * MINUTES - 1_000],
  ]],
  ["An abort before the start", at("starting", NEW), [event("abort"), event("ready")], "over", ends({ status: "aborted" }, null)],
  ["A caller's function that throws", at("asking"), [event("thrown", { error: "it" })], "over", [
    ["clear", OWN, false], ["reject", "it"],
  ]],
  ["…at the end", at("asking", { failures: 1, deadline: 1 }), [NO_ANSWER, event("thrown", { error: "it" })], "over", [
    ["onStatus", "retrying"], ...ends({ status: "expired" }), ["clear", OWN, false], ["reject", "it"],
  ]],
  // A storage that throws is not heard of: test_without_dom.py. So no row waits for `keep`, `share` or `keepCode`.
  ["A storage that throws", at("asking", { ...NEW, secrets: SECRETS }), [says(CREATED), says(CONFIRMED, { turn: 4 })],
    "confirmed", ["keep", "share", "onStatus", "onHint", "onLink", VERIFY, "confirm"]],
];

/** @param {Any} value @returns {Any} */
const freeze = (value) => {
  if (value && typeof value === "object") Object.values(Object.freeze(value)).forEach(freeze);
  return value;
};

for (const [name, before, events, phase, expected] of ROWS) {
  test(name, () => {
    let state = before;
    /** @type {Any[]} */
    const effects = [];
    for (const each of events) {
      const [next, more] = step(freeze(state), freeze(each));
      state = next;
      effects.push(...more);
    }
    assert.equal(state.phase, phase);
    const shown = effects.map((effect, index) => {
      const wanted = expected[index];
      return typeof wanted === "string" ? effect.slice(0, wanted.split(" ").length).join(" ") : effect;
    });
    assert.deepEqual(shown, expected);
  });
}

const EVENTS = ["ready", "answer", "alarm", "look", "changed", "used", "pasted", "accepted", "abort", "thrown"];

test("each phase has these events, and every other event changes nothing", () => {
  assert.deepEqual(Object.fromEntries(Object.entries(TABLE).map(([phase, row]) => [phase, Object.keys(row).sort().join(" ")])), {
    starting: "abort pasted ready thrown used",
    asking: "abort answer changed look pasted thrown used",
    pausing: "abort alarm changed look pasted thrown used",
    held: "abort alarm changed pasted thrown used",
    away: "abort changed look pasted thrown used",
    confirmed: "accepted thrown",
    over: "thrown",
  });
  for (const [phase, row] of Object.entries(TABLE)) {
    for (const type of EVENTS.filter((each) => !(each in row))) {
      assert.deepEqual(step(freeze(at(phase)), event(type)), [at(phase), []], `${phase}, ${type}`);
    }
  }
});

test("a proxy that ends long requests halves them, until the user looks", () => {
  const [cut] = step(at("asking"), { ...NO_ANSWER, now: 20_000 });
  assert.equal(cut.wait, 12);
  assert.equal(step(cut, event("look"))[0].wait, 25);
});
