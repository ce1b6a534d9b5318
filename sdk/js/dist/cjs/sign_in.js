"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.resume = exports.signIn = void 0;
const kept_js_1 = require("./kept.js");
const link_js_1 = require("./link.js");
const return_code_js_1 = require("./return_code.js");
const runner_js_1 = require("./runner.js");
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
        if (runner_js_1.running.size) {
            (0, return_code_js_1.clearAddress)();
        }
        else if ((0, return_code_js_1.isReturn)()) {
            location.reload();
        }
    });
/**
 * Sign in the user: get a link from the service, pass it to `onLink`, and wait until the user has decided.
 *
 * @param {SignInOptions} options
 * @returns {Promise<SignInResult>} Rejects only with a `SignInError` or an error from `onConfirmed`.
 */
const signIn = (options) => (0, runner_js_1.run)(options, null);
exports.signIn = signIn;
/**
 * Continue the sign-in that was in progress when this page was left or reloaded, or that the user confirmed before the
 * messenger opened this page.
 *
 * @param {SignInOptions} options The same as for `signIn`.
 * @returns {Promise<SignInResult> | null} null if no sign-in was in progress.
 */
const resume = (options) => {
    const { pending, hasEnded, isElsewhere } = (0, kept_js_1.returning)(options);
    if (runner_js_1.running.has((0, kept_js_1.keyOf)(options))) {
        return null;
    }
    const kept = (0, kept_js_1.ownKept)(options);
    const own = kept && (0, link_js_1.linkOf)(kept.deeplink) && kept.expiresAt > Date.now() ? kept : null;
    const before = (0, kept_js_1.keptCode)(options);
    if ((0, return_code_js_1.peekReturnCode)() || before) {
        // The code may belong to a sign-in of another button on this page.
        const code = (own || !isElsewhere ? (0, return_code_js_1.takeReturnCode)() : "") || before;
        const others = pending.filter(({ challenge }) => challenge !== own?.challenge);
        /** @type {SignInResult} */
        const lost = hasEnded ? { status: "used" } : { status: "other_browser", address: (0, return_code_js_1.addressWith)(code) };
        const candidates = own ? [own, ...others] : others;
        if (code && candidates.length) {
            const expiresAt = Date.now() + kept_js_1.RETURN_TIME;
            return (0, runner_js_1.run)(options, own, candidates.map((kept) => ({ ...kept, returnCode: code, expiresAt })), lost);
        }
        if (code && !hasEnded) {
            return Promise.resolve(lost);
        }
    }
    return own && (0, runner_js_1.run)(options, own);
};
exports.resume = resume;
