// A proof is an ordinary JWT: the two libraries that most of Node uses take it, and refuse what was forged or is over.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { jwtVerify } from "jose";
import jsonwebtoken from "jsonwebtoken";

/** @type {any[]} */
const cases = JSON.parse(readFileSync(new URL("../../vectors/proofs.json", import.meta.url), "ascii"));
/** Registered claims and a `typ` of made-up types, which libraries look at and the service never writes. */
const ODD = ["another typ in the header", "aud, nbf, sub and jti of any kind"];
const simple = cases.filter((each) => typeof each.secret === "string" && each.leeway === undefined && !ODD.includes(each.name));
const good = simple.filter((each) => each.expected.identity && each.guard === undefined);
const bad = simple.filter((each) => ["ProofSignatureInvalid", "ProofExpired"].includes(each.expected.error) && each.now !== "NaN");

/** @type {Record<string, (each: any) => Promise<any> | any>} */
const libraries = {
  jose: async (each) => {
    const options = { algorithms: ["HS256"], issuer: "taproof", currentDate: new Date(each.now * 1000) };
    return (await jwtVerify(each.proof, new TextEncoder().encode(each.secret), options)).payload;
  },
  jsonwebtoken: (each) =>
    jsonwebtoken.verify(each.proof, each.secret, {
      algorithms: ["HS256"],
      issuer: "taproof",
      clockTimestamp: Math.floor(each.now),
    }),
};

for (const [name, verify] of Object.entries(libraries)) {
  for (const each of good) {
    test(`${name} takes: ${each.name}`, async () => {
      const claims = await verify(each);
      const { identity } = each.expected;
      assert.equal(claims.messenger_id, identity.messenger_id);
      assert.equal(claims.messenger_name, identity.messenger_name);
      assert.equal(claims.session_token, identity.session_token);
      assert.equal(claims.exp, identity.expires_at);
    });
  }
  for (const each of bad) {
    test(`${name} refuses: ${each.name}`, async () => {
      await assert.rejects(async () => verify(each));
    });
  }
}

test("there is something to take and to refuse", () => {
  assert(good.length > 15);
  assert(bad.length > 30);
});
