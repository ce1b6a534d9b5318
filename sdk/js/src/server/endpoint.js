// The application's own endpoint, in the words of no framework: it takes a proof and says whose session to start.
// express.js and next.js gather what was asked, keep the session and send the answer. The same rules as in Python:
// src/taproof/integrations/endpoint.py.

import { createHash } from "node:crypto";

import { ProofAlreadyUsed, ProofError } from "./errors.js";
import { verifyProof } from "./proof.js";
import { requireWebhookSecrets } from "./secrets.js";
import { readObject } from "./strict_json.js";

/** Bytes: twice the longest proof that is looked at. */
export const BODY_LIMIT = 32_768;
/** Bytes after which nothing more is read. */
const DROPPED_LIMIT = 4_194_304;
export const HOME = "/";

// Browsers take a backslash for a slash, and leave out tabs and line breaks: "/\t/other.example" leads away too.
const OWN_PATH = /^\/[^\\\x00-\x20\x7f]{0,2047}$/;
// In "/.//other.example" the dot falls away, as "%2e" does, and two slashes are left at the beginning.
const LEADS_AWAY = /\/(?:\/|(?:\.|%2e){1,2}(?:\/|$))/i;
/** @type {Record<string, string>} */
const DEFAULT_PORTS = { http: ":80", https: ":443" };

/**
 * Who is signed in: what the application's session keeps. It never holds the proof or the session token.
 *
 * @typedef {object} SignedIn
 * @property {string} messengerId The user's account in the messenger, digits: the key to store a user under.
 * @property {string} messengerName The display name that the user chose. Anybody may choose any: escape it, trust it in
 *   nothing.
 * @property {string} messengerUsername The handle, without "@"; "" when there is none. It may pass to somebody else.
 * @property {number} signedInAt When, in seconds since the epoch.
 * @property {string} [messengerPhone] The user's phone number, such as "+4915123456789"; there only when the project
 *   collects it and the user gave it.
 */

/**
 * @typedef {object} EndpointOptions
 * @property {string} projectId The project whose proofs are accepted, `proj_…`.
 * @property {string | readonly string[]} webhookSecret `whsec_…`; several during a rotation.
 * @property {import("./guard.js").SingleUseGuard} guard What lets each proof in only once, for all processes of the
 *   application together. `new MemoryGuard()` is right for a single one; hence there is no default.
 * @property {string} [afterSignIn] Where the page goes when the address that was posted to has no `?next=/page`; "/"
 *   unless given.
 * @property {() => number} [now] The clock, in seconds since the epoch, as a test would give.
 */

/**
 * A request, as far as it matters here. `scheme` and `host` are those of the application's public address.
 *
 * @typedef {object} Asked
 * @property {string | null | undefined} contentType
 * @property {string | null | undefined} fetchSite
 * @property {string | null | undefined} origin
 * @property {string} scheme
 * @property {string} host
 */

/**
 * What to send, as JSON with `Cache-Control: no-store`; and, after a sign-in, whom to start a fresh session for first.
 *
 * @typedef {object} Answer
 * @property {number} status
 * @property {{ location: string } | { error: string }} content
 * @property {SignedIn} [signedIn]
 * @property {string} [proofDigest] What stands for the proof, beside `signedIn`: the session is to hold it too.
 */

/**
 * @param {EndpointOptions} options
 * @throws {TypeError} Something is missing, told when the application starts and not at the first sign-in.
 */
export function makeEndpoint({ projectId, webhookSecret, guard, afterSignIn = HOME, now = () => Date.now() / 1000 }) {
  const secrets = requireWebhookSecrets(webhookSecret);
  if (typeof projectId !== "string" || !projectId.startsWith("proj_")) {
    throw new TypeError("Give projectId: the project's id (proj_…), as Taproof's console shows it.");
  }
  if (typeof guard?.take !== "function") {
    throw new TypeError("Give guard: new MemoryGuard() for one process, or one that all of your processes share.");
  }

  return {
    /**
     * Check the proof in a body whose sender `refusal` has let pass.
     *
     * @param {unknown} body The bytes, or what a parser has made of them.
     * @param {string | null | undefined} next
     * @param {unknown} [held] The `proofDigest` that the caller's own session holds. It is signed in with that proof then:
     *   when it sends it once more, because the answer was lost on its way, it is told again where to go.
     * @returns {Promise<Answer>}
     */
    async signIn(body, next, held) {
      if (body instanceof Uint8Array && body.length > BODY_LIMIT) return failed(413, "The request body is too large.");
      const proof = proofOf(body);
      if (proof === null) {
        return failed(400, 'The body must be JSON: {"proof": "…"}, with the proof as a string.');
      }
      const instant = now();
      const content = { location: ownPath(next, ownPath(afterSignIn)) };
      let proofDigest = "";
      /** Asked last, when all else about the proof is right. @type {import("./guard.js").SingleUseGuard} */
      const guarding = {
        take(sessionToken, expiresAt) {
          proofDigest = createHash("sha256").update(sessionToken).digest("base64url");
          return guard.take(sessionToken, expiresAt);
        },
      };
      try {
        const identity = await verifyProof(proof, secrets, { projectId, guard: guarding, now: instant });
        const signedIn = /** @type {SignedIn} */ (signedInOf({ ...identity, signedInAt: Math.floor(instant) }));
        return { status: 200, content, signedIn, proofDigest };
      } catch (error) {
        if (error instanceof ProofAlreadyUsed && held === proofDigest) return { status: 200, content };
        if (error instanceof ProofError) return failed(401, error.message);
        throw error;
      }
    },
  };
}

/**
 * Return the answer to what no page of this application has sent, or null for what one has.
 *
 * Without this another site could sign its visitors in to an account of its own (login CSRF), or sign them out. A form
 * cannot send this content type, and a script of another site can only after a preflight that nothing here answers. Nor
 * can a script set either header: browsers write them. Sec-Fetch-Site decides alone when it is there, for it does not
 * depend on how the application's own address is known; it is left out on plain HTTP, and by old browsers.
 *
 * @param {Asked} asked
 * @returns {Answer | null}
 */
export function refusal({ contentType, fetchSite, origin, scheme, host }) {
  if ((contentType ?? "").split(";")[0].trim().toLowerCase() !== "application/json") {
    return failed(403, "Send JSON, with Content-Type: application/json.");
  }
  const isOwn = fetchSite ? fetchSite === "same-origin" : origin === originOf(scheme, host);
  if (isOwn) return null;
  return failed(
    403,
    "This did not come from a page of this application."
    + " Behind a proxy, set the framework to trust its X-Forwarded-Proto and X-Forwarded-Host.",
  );
}

/** The answer to a proof that holds, and an account that the application does not let in. @returns {Answer} */
export const refusedAccount = () =>
  failed(403, "This account cannot sign in here. Ask whoever runs this application.");

/** @param {number} status @param {string} error @returns {Answer} */
export const failed = (status, error) => ({ status, content: { error } });

/**
 * Return the path if it leads to a page of this site: a sign-in must not send its user elsewhere.
 *
 * @param {string | null | undefined} path
 * @param {string} [otherwise]
 */
export function ownPath(path, otherwise = HOME) {
  const isOwn = typeof path === "string" && OWN_PATH.test(path) && !LEADS_AWAY.test(path.split(/[?#]/, 1)[0]);
  return isOwn ? path : otherwise;
}

/**
 * Return who the session speaks of; null when it holds nothing, or nothing of this release.
 *
 * @param {any} value
 * @returns {SignedIn | null}
 */
export function signedInOf(value) {
  const { messengerId, messengerName, messengerUsername, messengerPhone, signedInAt } = value ?? {};
  const isWhole = [messengerId, messengerName, messengerUsername].every((each) => typeof each === "string");
  if (!isWhole || messengerId === "" || !Number.isInteger(signedInAt)) return null;
  const signedIn = { messengerId, messengerName, messengerUsername, signedInAt };
  return typeof messengerPhone === "string" ? { ...signedIn, messengerPhone } : signedIn;
}

/**
 * Read a request's body. What is beyond the limit is read and dropped, up to 4 MiB: cut off, the client might never see
 * the answer.
 *
 * @param {AsyncIterable<Uint8Array>} stream
 * @returns {Promise<Buffer>} One byte more than the limit at most.
 */
export async function readBody(stream) {
  const chunks = [];
  let [length, seen] = [0, 0];
  for await (const chunk of stream) {
    const kept = chunk.subarray(0, BODY_LIMIT + 1 - length);
    if (kept.length > 0) chunks.push(kept);
    length += kept.length;
    seen += chunk.length;
    if (seen > DROPPED_LIMIT) break;
  }
  return Buffer.concat(chunks);
}

/** @param {unknown} body */
function proofOf(body) {
  let fields = body;
  if (body instanceof Uint8Array || typeof body === "string") {
    try {
      ({ fields } = readObject(Buffer.from(body)));
    } catch {
      return null;
    }
  }
  const proof = typeof fields === "object" && fields !== null && "proof" in fields ? fields.proof : null;
  return typeof proof === "string" ? proof : null;
}

/**
 * Write an origin as browsers do: lower case, without the scheme's own port (RFC 6454, 6.2).
 *
 * @param {string} scheme
 * @param {string} host
 */
function originOf(scheme, host) {
  const [lowScheme, lowHost] = [scheme.toLowerCase(), host.toLowerCase()];
  const port = DEFAULT_PORTS[lowScheme];
  return `${lowScheme}://${port && lowHost.endsWith(port) ? lowHost.slice(0, -port.length) : lowHost}`;
}
