import { keptCode, keyOf, ownKept, RETURN_TIME, returning } from "./kept.js";
import { linkOf } from "./link.js";
import { addressWith, clearAddress, isReturn, peekReturnCode, takeReturnCode } from "./return_code.js";
import { run, running } from "./runner.js";

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
 *   `expired`: after ten minutes. `used`: the result was already received, such as by the page that the messenger opened.
 *   `aborted`: by `signal`.
 *
 * @typedef {object} OtherBrowser The messenger opened this page in a browser that did not begin the sign-in.
 * @property {"other_browser"} status
 * @property {string} address Let the user open or copy this address into the browser where the sign-in began. It contains
 *   the return code: send it nowhere.
 *
 * @typedef {Confirmed | Ended | OtherBrowser} SignInResult
 *
 * @typedef {"starting" | "pending" | "retrying"} WaitingStatus `retrying`: the service cannot be reached.
 *
 * @typedef {"waiting" | "opened" | "choosing" | "phone_asked" | "return" | "unreachable"} Hint What the user is doing in the
 *   messenger. `opened`: the link is open. `choosing`: the user must choose the match code. `phone_asked`: the bot asks for
 *   the phone number. `return`: the user confirmed and must tap *Back to …*. `unreachable`: the user has blocked the bot.
 *
 * @typedef {object} SignInOptions
 * @property {string} projectId
 * @property {string} [baseUrl] The service's address; by default, the origin that this module was loaded from.
 * @property {AbortSignal} [signal] Ends, cancels and forgets the sign-in, with the status `aborted`.
 * @property {Pick<Storage, "getItem" | "setItem" | "removeItem"> | null} [storage] Stores the sign-in so that it survives
 *   a reload; by default `sessionStorage`, and also `localStorage` if the messenger opens the page after Confirm, maybe in
 *   a new tab; null for none. The stored data contains the secret for reading the result.
 * @property {(link: SignInLink) => void} [onLink] Called once, with the link to show to the user.
 * @property {(status: WaitingStatus) => void} [onStatus] Called on every change.
 * @property {(hint: Hint) => void} [onHint] Called on every change while the status is `pending`.
 * @property {(result: Confirmed) => unknown} [onConfirmed] Called, and awaited, before the sign-in is forgotten and the
 *   promise resolves. Send the proof to your server here: if the page is reloaded before this finishes, it is called
 *   again. If it throws an error, the promise rejects with that error.
 */

// The user may paste the address with the return code into this tab, which then does not load the page again.
globalThis.document &&
  addEventListener("hashchange", () => {
    if (running.size) {
      clearAddress();
    } else if (isReturn()) {
      location.reload();
    }
  });

/**
 * Sign in the user: get a link from the service, pass it to `onLink`, and wait until the user has decided.
 *
 * @param {SignInOptions} options
 * @returns {Promise<SignInResult>} Rejects only with a `SignInError` or an error from `onConfirmed`.
 */
export const signIn = (options) => run(options, null);

/**
 * Continue the sign-in that was in progress when this page was left or reloaded, or that the user confirmed before the
 * messenger opened this page.
 *
 * @param {SignInOptions} options The same as for `signIn`.
 * @returns {Promise<SignInResult> | null} null if no sign-in was in progress.
 */
export const resume = (options) => {
  const { pending, hasEnded, isElsewhere } = returning(options);
  if (running.has(keyOf(options))) {
    return null;
  }
  const kept = ownKept(options);
  const own = kept && linkOf(kept.deeplink) && kept.expiresAt > Date.now() ? kept : null;
  const before = keptCode(options);
  if (peekReturnCode() || before) {
    // The code may belong to a sign-in of another button on this page.
    const code = (own || !isElsewhere ? takeReturnCode() : "") || before;
    const others = pending.filter(({ challenge }) => challenge !== own?.challenge);
    /** @type {SignInResult} */
    const lost = hasEnded ? { status: "used" } : { status: "other_browser", address: addressWith(code) };
    const candidates = own ? [own, ...others] : others;
    if (code && candidates.length) {
      const expiresAt = Date.now() + RETURN_TIME;
      return run(options, own, candidates.map((kept) => ({ ...kept, returnCode: code, expiresAt })), lost);
    }
    if (code && !hasEnded) {
      return Promise.resolve(lost);
    }
  }
  return own && run(options, own);
};
