// sdk/vectors: the SDK for Node says of each proof and webhook there what all SDKs must say.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as taproof from "../src/server/index.js";

/** @param {string} name */
const cases = (name) => JSON.parse(readFileSync(new URL(`../../vectors/${name}`, import.meta.url), "ascii"));

/** JSON has no NaN and no Infinity, so these stand there as strings. @param {Record<string, any>} options */
const numbers = (options) =>
  Object.fromEntries(
    Object.entries(options)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, Number(value)]),
  );

/** @param {any} error @param {Function} kind */
const told = (error, kind) => {
  if (!(error instanceof kind) && !(error instanceof TypeError)) throw error;
  assert(!error.message.includes("TTTT"), "the message holds the session token");
  assert.equal(error.cause, undefined);
  return { error: error instanceof kind ? error.name : "WrongSetting" };
};

/** @param {Record<string, any>} values The SDK's names. */
const inSnakeCase = (values) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name.replace(/[A-Z]/g, (each) => `_${each.toLowerCase()}`), value]),
  );

for (const each of cases("proofs.json")) {
  test(`proof: ${each.name}`, () => {
    /** @type {string[]} */
    const asked = [];
    const guard = {
      /** @param {string} token */
      take(token) {
        asked.push(token);
        return each.guard;
      },
    };
    const options = {
      projectId: each.project_id ?? null,
      ...numbers({ now: each.now, leeway: each.leeway }),
      ...("guard" in each && { guard }),
    };
    let outcome;
    try {
      const identity = taproof.verifyProof(each.proof, each.secret, options);
      assert(Object.isFrozen(identity));
      assert(!JSON.stringify(identity).includes(identity.sessionToken));
      outcome = { identity: inSnakeCase({ ...identity, sessionToken: identity.sessionToken }) };
    } catch (error) {
      outcome = told(error, taproof.ProofError);
    }
    assert.deepEqual(outcome, each.expected);
    const holds = each.expected.identity || each.expected.error === "ProofAlreadyUsed";
    assert.equal(asked.length, "guard" in each && holds ? 1 : 0);
  });
}

for (const each of cases("webhooks.json")) {
  test(`webhook: ${each.name}`, () => {
    const body = Buffer.from(each.body, "base64");
    let outcome;
    try {
      const options = numbers({ now: each.now, tolerance: each.tolerance });
      const event = taproof.verifyWebhook(body, each.headers, each.secret, options);
      const { sessionToken, data } = event;
      assert(Object.isFrozen(event));
      assert(!JSON.stringify(event).includes("TTTT"));
      assert.deepEqual(data, JSON.parse(body.toString()));
      outcome = { event: inSnakeCase({ ...event, sessionToken }) };
    } catch (error) {
      outcome = told(error, taproof.WebhookError);
    }
    assert.deepEqual(outcome, each.expected);
  });
}
