// Proofs as the service signs them, for the tests.

import { createHmac, randomBytes } from "node:crypto";

export const SECRET = `whsec_${Buffer.from([...Array(32).keys()]).toString("base64")}`;
export const PROJECT = "proj_0123456789abcdefABCDEF";

/**
 * @param {Record<string, unknown>} [changes]
 * @param {string} [secret]
 * @returns {string} A proof that was issued just now; each stands for a sign-in of its own.
 */
export function makeProof(changes = {}, secret = SECRET) {
  const iat = Math.floor(Date.now() / 1000);
  const claims = {
    messenger_id: "1001",
    messenger_name: "Ada <b>",
    messenger_username: "ada",
    project_id: PROJECT,
    session_token: randomBytes(32).toString("base64url"),
    iss: "taproof",
    iat,
    exp: iat + 300,
    ...changes,
  };
  const parts = [{ typ: "JWT", alg: "HS256" }, claims];
  const signed = parts.map((each) => Buffer.from(JSON.stringify(each)).toString("base64url")).join(".");
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}
