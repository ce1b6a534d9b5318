import { SignInError } from "./errors.js";
import { linkOf } from "./link.js";

/**
 * @typedef {import("./link.js").SignInLink} SignInLink
 *
 * @typedef {object} Identity
 * @property {string} messengerId
 * @property {string} messengerName
 * @property {string | null} messengerUsername
 * @property {string | null} messengerPhone null unless the project collects it and the user shared it.
 *
 * @typedef {object} Confirmed
 * @property {"confirmed"} status
 * @property {Identity} identity For display only: your server must trust only the identity in the proof.
 * @property {string} proof A signed JWT. Send it to your server, which checks it with the webhook secret.
 * @property {string} confirmedAt The time of the confirmation by the service's clock, in ISO 8601.
 *
 * @typedef {object} Ended
 * @property {"cancelled" | "expired" | "used" | "aborted"} status `cancelled`: by the user in the messenger.
 *   `expired`: after ten minutes. `used`: the result was already received. `aborted`: by `signal`.
 *
 * @typedef {Confirmed | Ended} SignInResult
 *
 * @typedef {"starting" | "pending" | "retrying"} WaitingStatus `retrying`: the service cannot be reached.
 *
 * @typedef {object} SignInOptions
 * @property {string} projectId
 * @property {string} [baseUrl] The service's address; by default, the origin that this module was loaded from.
 * @property {AbortSignal} [signal] Ends and forgets the sign-in, with the status `aborted`.
 * @property {Pick<Storage, "getItem" | "setItem" | "removeItem"> | null} [storage] Stores the sign-in so that it survives
 *   a reload; `sessionStorage` by default, null for none. The stored data contains the secret for reading the result.
 * @property {(link: SignInLink) => void} [onLink] Called once, with the link to show to the user.
 * @property {(status: WaitingStatus) => void} [onStatus] Called on every change.
 * @property {(result: Confirmed) => unknown} [onConfirmed] Called, and awaited, before the sign-in is forgotten and the
 *   promise resolves. Send the proof to your server here: if the page is reloaded before this finishes, it is called
 *   again. If it throws an error, the promise rejects with that error.
 *
 * @typedef {object} Kept The data that survives a reload.
 * @property {string} token
 * @property {string} deeplink
 * @property {string | null} [matchCode]
 * @property {string} verifier
 * @property {number} startedAt Time by the local clock, in milliseconds; compared only with that clock.
 */

/** Milliseconds that a session can be pending. */
const LIFETIME = 600_000;
/** Seconds that one call waits for the user; most proxies time out after 30 or 60. */
const WAIT = 25;
/** Milliseconds between two calls if waiting does not work. */
const INTERVAL = 2_000;
const LONGEST_PAUSE = 15_000;
const OVERDUE = 10_000;
/** The media query for phones, where the messenger covers the page. */
export const PHONE = "(pointer:coarse) and (max-width:600px),(pointer:coarse) and (max-height:500px)";

/** Keys of the sign-ins that this page waits for. @type {Set<string>} */
const running = new Set();

/** @param {SignInOptions} options */
const baseOf = ({ baseUrl }) => (baseUrl || new URL(import.meta.url).origin).replace(/\/$/, "");

/** @param {SignInOptions} options */
const keyOf = (options) => `taproof:${baseOf(options)}:${options.projectId}`;

/**
 * Use the storage if there is one. If the browser blocks it, a sign-in does not survive a reload.
 *
 * @template T
 * @param {SignInOptions} options
 * @param {(storage: Pick<Storage, "getItem" | "setItem" | "removeItem">) => T} use
 * @returns {T | null}
 */
const withStorage = ({ storage = undefined }, use) => {
  try {
    return use(/** @type {Storage} */ (storage === undefined ? sessionStorage : storage));
  } catch {
    return null;
  }
};

/** @param {Uint8Array} bytes */
const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

/**
 * Sign in the user: get a link from the service, pass it to `onLink`, and wait until the user has decided.
 *
 * @param {SignInOptions} options
 * @returns {Promise<SignInResult>} Rejects only with a `SignInError` or an error from `onConfirmed`.
 */
export const signIn = (options) => run(options, null);

/**
 * Continue the sign-in that was in progress when this page was left or reloaded.
 *
 * @param {SignInOptions} options The same as for `signIn`.
 * @returns {Promise<SignInResult> | null} null if no sign-in was in progress.
 */
export const resume = (options) => {
  const key = keyOf(options);
  const kept = /** @type {Kept | null} */ (
    withStorage(options, (storage) => JSON.parse(storage.getItem(key) || "null"))
  );
  return kept && !running.has(key) && linkOf(kept.deeplink) && Date.now() - kept.startedAt < LIFETIME
    ? run(options, kept)
    : null;
};

/**
 * @param {SignInOptions} options
 * @param {Kept | null} kept
 * @returns {Promise<SignInResult>}
 */
const run = async (options, kept) => {
  const { projectId, signal, onLink, onStatus, onConfirmed } = options;
  const key = keyOf(options);
  const listening = new AbortController();
  const verifier = kept?.verifier ?? base64url(crypto.getRandomValues(new Uint8Array(32)));
  let deadline = performance.now() + LIFETIME - (kept ? Math.max(0, Date.now() - kept.startedAt) : 0);
  let wait = WAIT;
  let failures = 0;
  let told = "";
  /** Whether to call again immediately. */
  let woken = false;
  /** Whether the service requested the current pause, which only `signal` can end early. */
  let held = false;
  /** Ends the current wait for an answer or for the next call. */
  let interrupt = () => {};

  /** @param {WaitingStatus} status */
  const tell = (status) => {
    if (status !== told) {
      told = status;
      onStatus?.(status);
    }
  };
  // A confirmed result can be read again for only 60 seconds. While a phone shows the messenger, it may suspend this page
  // for longer and lose the answer, so the page requests the result when it is visible again.
  const away = () => kept && document.hidden && matchMedia(PHONE).matches;
  // Browsers slow down the timers of hidden tabs, and a request sent before a phone went to sleep may never be answered. A
  // user who returns must not wait for either.
  /** @param {Event} event */
  const look = (event) => {
    // The first `pageshow` only means that the page has loaded.
    if (!held && (away() || (!document.hidden && /** @type {PageTransitionEvent} */ (event).persisted !== false))) {
      woken = true;
      wait = WAIT;
      interrupt();
    }
  };
  for (const type of ["visibilitychange", "pageshow", "online"]) {
    addEventListener(type, look, { signal: listening.signal });
  }
  signal?.addEventListener("abort", () => interrupt(), { signal: listening.signal });
  running.add(key);

  try {
    if (!crypto.subtle) {
      throw new SignInError(
        "insecure_context",
        "Signing in needs a secure page: open this one over https, or on localhost.",
      );
    }
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
    const challenge = base64url(new Uint8Array(digest));
    const shown = linkOf(kept?.deeplink, kept?.matchCode);
    tell(kept ? "pending" : "starting");
    if (shown) {
      onLink?.(shown);
    }
    while (!signal?.aborted) {
      if (away()) {
        await new Promise((resolve) => {
          interrupt = () => resolve(null);
        });
        continue;
      }
      // After a failure, request an immediate answer to find out whether the service is back.
      const seconds = failures || !kept ? 0 : wait;
      const asked = performance.now();
      const request = new AbortController();
      const timer = setTimeout(() => request.abort(), seconds * 1_000 + OVERDUE);
      interrupt = () => request.abort();
      woken = false;
      /** @type {Response | undefined} */
      let response;
      /** @type {any} */
      let answer;
      try {
        response = await fetch(`${baseOf(options)}/api/v1/${kept ? "verify" : "generate"}/public`, {
          method: "POST",
          credentials: "omit",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(
            kept
              ? { project_id: projectId, session_token: kept.token, code_verifier: kept.verifier, wait: seconds }
              : { project_id: projectId, code_challenge: challenge, code_challenge_method: "S256" },
          ),
          signal: request.signal,
        });
        answer = await response.json();
      } catch {
        // There was no answer, a partial one, or a proxy's error page: try again.
      }
      clearTimeout(timer);
      if (signal?.aborted) {
        break;
      }
      const code = response?.status ?? 0;
      const link = linkOf(answer?.deeplink, answer?.match_code);
      let pause = INTERVAL;
      if (code === 200 && !kept && link) {
        kept = { ...link, token: String(answer.session_token), verifier, startedAt: Date.now() };
        withStorage(options, (storage) => storage.setItem(key, JSON.stringify(kept)));
        deadline = performance.now() + LIFETIME;
        failures = 0;
        tell("pending");
        onLink?.(link);
        continue;
      } else if (code === 200 && kept && answer?.status === "pending") {
        // An early answer means that the service cannot hold this call.
        pause = seconds && performance.now() - asked > seconds * 1_000 - 1_000 ? 0 : INTERVAL;
        failures = 0;
        tell("pending");
      } else if (code === 200 && kept && answer?.status === "confirmed") {
        /** @type {Confirmed} */
        const result = {
          status: "confirmed",
          identity: {
            messengerId: answer.messenger_id,
            messengerName: answer.messenger_name,
            messengerUsername: answer.messenger_username,
            messengerPhone: answer.messenger_phone ?? null,
          },
          proof: answer.proof,
          confirmedAt: answer.confirmed_at,
        };
        await onConfirmed?.(result);
        return result;
      } else if (code === 200 && kept && ["cancelled", "expired", "used"].includes(answer?.status)) {
        return { status: answer.status };
      } else if (code >= 400 && code < 500 && code !== 408 && code !== 429 && (answer?.error || !kept)) {
        throw new SignInError(
          response?.headers.get("X-Error-Code") ?? "unexpected_answer",
          answer?.error ?? `${baseOf(options)} is not a sign-in service: it answered with status ${code}.`,
          code,
        );
      } else if (woken) {
        continue;
      } else {
        // A proxy may have ended a long call: try half the time.
        if (performance.now() - asked > 1_000) {
          wait >>= 1;
        }
        const ordered = Number(response?.headers.get("Retry-After")) * 1_000 || 0;
        held = ordered > 0;
        pause = Math.max(ordered, Math.min(LONGEST_PAUSE, 1_000 * 2 ** failures++) * (0.5 + Math.random() / 2));
        if (failures > 1) {
          tell("retrying");
        }
      }
      const left = deadline - performance.now();
      if (left < 0) {
        return { status: "expired" };
      }
      if (pause) {
        await new Promise((resolve) => {
          const alarm = setTimeout(resolve, Math.min(pause, left));
          interrupt = () => {
            clearTimeout(alarm);
            resolve(null);
          };
        });
      }
      held = false;
    }
    return { status: "aborted" };
  } finally {
    listening.abort();
    running.delete(key);
    // Do not remove a newer sign-in from the storage.
    withStorage(options, (storage) => storage.getItem(key)?.includes(verifier) && storage.removeItem(key));
  }
};
