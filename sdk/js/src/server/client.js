// The session endpoints for an application's own server, which starts sign-ins with the project's secret key.

import { createHash, randomBytes } from "node:crypto";

import { readBody } from "./endpoint.js";
import { TaproofApiError } from "./errors.js";
import { readObject } from "./strict_json.js";

const BASE_URL = /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$))[A-Za-z0-9.:\[\]-]*(\/[\w.~-]+)*$/;
const LONGEST_SENTENCE = 500;
// Possible credentials, session tokens, code verifiers and proofs: an answer may echo the request.
const SECRET = /\b(?:tap|sk|ocs|whsec)_[\w+/=-]+|[\w.~-]{43,}/g;

/**
 * @typedef {object} StartedSignIn Keep it on the server: together with the return code, it reads the result.
 * @property {string} sessionToken
 * @property {string} deeplink The link that the user opens.
 * @property {string | null} codeVerifier null if you passed `codeChallenge`.
 * @property {string} expiresAt The time when the link stops working, in ISO 8601.
 * @property {string | null} matchCode The number to show next to the link; null unless the project's `match_code` is on.
 * @property {boolean} returnRequired Whether only the page at `returnUrl` gets the result: show no QR code.
 *
 * @typedef {object} MessengerUser For display: trust the proof.
 * @property {string} messengerId
 * @property {string} messengerName
 * @property {string | null} messengerUsername
 * @property {string | null} messengerPhone
 *
 * @typedef {{ status: "pending", hint: string | null }
 *   | { status: "confirmed", identity: MessengerUser, proof: string, confirmedAt: string }
 *   | { status: "cancelled" | "expired" | "used" }} SessionResult
 */

/**
 * Calls the service with the project's secret key. Every method can reject with a `TaproofApiError`. No call is repeated.
 */
export class Client {
  #base;
  #key;
  #timeout;

  /**
   * @param {object} options
   * @param {string} options.baseUrl The service's address. `http://` is allowed for loopback only.
   * @param {string} options.secretKey `sk_…`
   * @param {number} [options.timeout] Seconds for one call, in addition to `wait`; 10 by default.
   * @throws {TypeError} An option is not valid. The message does not contain it.
   */
  constructor({ baseUrl, secretKey, timeout = 10 }) {
    this.#base = typeof baseUrl === "string" ? baseUrl.replace(/(?<!\/)\/+$/, "") : "";
    if (!BASE_URL.test(this.#base) || !URL.canParse(this.#base)) {
      throw new TypeError("Pass baseUrl: the https:// address of the service, such as https://signin.example.com.");
    }
    if (typeof secretKey !== "string" || !/^sk_[A-Za-z0-9]+$/.test(secretKey)) {
      throw new TypeError("Pass secretKey: the project's secret key (sk_…), as shown when it was created.");
    }
    if (typeof timeout !== "number" || !(timeout > 0 && timeout < 1e6)) {
      throw new TypeError("Pass timeout as a number of seconds.");
    }
    this.#key = secretKey;
    this.#timeout = timeout;
  }

  /**
   * Start a sign-in. Show the user its `deeplink`.
   *
   * @param {object} [options]
   * @param {string} [options.returnUrl] The page that the messenger opens after Confirm, with `#taproof_return=<code>`: one
   *   of the project's `return_urls`, exactly, or, if there are none, a page of its `allowed_origins`.
   * @param {string} [options.codeChallenge] The S256 challenge of a verifier that another part of your application has.
   *   Without it, a new verifier is in the result.
   * @returns {Promise<StartedSignIn>}
   */
  async createSession({ returnUrl, codeChallenge } = {}) {
    const codeVerifier = codeChallenge === undefined ? randomBytes(32).toString("base64url") : null;
    const challenge = codeVerifier && createHash("sha256").update(codeVerifier).digest("base64url");
    const answer = await this.#ask("generate", {
      code_challenge: codeChallenge ?? challenge,
      code_challenge_method: "S256",
      return_url: returnUrl,
    });
    const { session_token: sessionToken, deeplink, expires_at: expiresAt } = answer;
    if (![sessionToken, deeplink, expiresAt].every((each) => typeof each === "string" && each)) throw unexpected(200);
    return {
      sessionToken,
      deeplink,
      codeVerifier,
      expiresAt,
      matchCode: answer.match_code ?? null,
      returnRequired: answer.return_required === true,
    };
  }

  /**
   * Read the status of a sign-in once. If it is confirmed, check the proof with `verifyProof`.
   *
   * @param {{ sessionToken: string, codeVerifier: string | null }} signIn The value that `createSession` returned.
   * @param {object} [options]
   * @param {string} [options.returnCode] The code that the messenger added to `returnUrl`.
   * @param {number} [options.wait] Seconds to wait for the user's decision, at most 30.
   * @param {boolean} [options.hints] Whether a pending result says what the user is doing in the messenger.
   * @param {string} [options.seenHint] With `wait`: return also when the hint is no longer this one.
   * @returns {Promise<SessionResult>}
   */
  async verifySession({ sessionToken, codeVerifier }, { returnCode, wait = 0, hints = false, seenHint } = {}) {
    const body = {
      session_token: sessionToken,
      code_verifier: codeVerifier ?? undefined,
      return_code: returnCode,
      ...(wait ? { wait } : {}),
      ...(hints ? { hints, seen_hint: seenHint } : {}),
    };
    const answer = await this.#ask("verify", body, wait);
    const { status } = answer;
    if (status === "pending") return { status, hint: typeof answer.hint === "string" ? answer.hint : null };
    if (["cancelled", "expired", "used"].includes(status)) return { status };
    if (status !== "confirmed" || typeof answer.proof !== "string") throw unexpected(200);
    return {
      status,
      identity: {
        messengerId: answer.messenger_id,
        messengerName: answer.messenger_name,
        messengerUsername: answer.messenger_username,
        messengerPhone: answer.messenger_phone ?? null,
      },
      proof: answer.proof,
      confirmedAt: answer.confirmed_at,
    };
  }

  /**
   * Cancel a sign-in that is still pending, such as when the user closed the page. The messenger shows it.
   *
   * @param {{ sessionToken: string }} signIn
   * @returns {Promise<string>} The status, which is not `cancelled` if the sign-in had ended before.
   */
  async cancelSession({ sessionToken }) {
    const { status } = await this.#ask("cancel", { session_token: sessionToken });
    if (typeof status !== "string") throw unexpected(200);
    return status;
  }

  /**
   * @param {string} verb
   * @param {object} body
   * @param {number} [wait]
   * @returns {Promise<any>}
   */
  async #ask(verb, body, wait = 0) {
    let response;
    let fields;
    try {
      response = await fetch(`${this.#base}/api/v1/${verb}`, {
        method: "POST",
        headers: { "Authorization": `Bearer ${this.#key}`, "Content-Type": "application/json" },
        body: JSON.stringify(body),
        redirect: "error",
        signal: AbortSignal.timeout((this.#timeout + wait) * 1_000),
      });
      fields = await readBody(/** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (response.body ?? [])));
    } catch (error) {
      const { cause, name } = /** @type {any} */ (error);
      const reason = name === "TimeoutError" ? "no answer in time" : (cause?.code ?? "the connection failed");
      throw new TaproofApiError(`The sign-in service cannot be reached: ${reason}.`);
    }
    /** @type {any} */
    let answer = null;
    try {
      answer = readObject(fields).fields;
    } catch {
      // It is not JSON: the next lines say so.
    }
    if (response.status === 200 && answer) return answer;
    if (response.status < 400 || typeof answer?.error !== "string") throw unexpected(response.status);
    const code = response.headers.get("X-Error-Code") ?? "";
    throw new TaproofApiError(answer.error.replace(SECRET, "…").slice(0, LONGEST_SENTENCE), {
      status: response.status,
      code: /^[a-z0-9_]{1,60}$/.test(code) ? code : "",
      retryAfter: Number(response.headers.get("Retry-After")) || null,
    });
  }
}

/** @param {number} status */
const unexpected = (status) =>
  new TaproofApiError(`The answer, with status ${status}, is not that of a sign-in service. Is baseUrl its address?`, { status });
