"use strict";
// Stores sign-ins in progress. The tab's own storage is for a reload. `localStorage` is only for sign-ins of which the
// messenger opens the page after Confirm, maybe in a new tab: a browser that has the code verifier there can finish them.
Object.defineProperty(exports, "__esModule", { value: true });
exports.returning = exports.unshare = exports.forget = exports.share = exports.forgetCode = exports.keepCode = exports.keptCode = exports.keep = exports.ownKept = exports.nameOf = exports.keyOf = exports.RETURN_TIME = exports.LIFETIME = void 0;
const service_js_1 = require("./service.js");
/** @typedef {import("./sign_in.js").SignInOptions} SignInOptions */
/**
 * @typedef {object} Kept A sign-in in progress.
 * @property {string} token
 * @property {string} deeplink
 * @property {string | null} [matchCode]
 * @property {boolean} [returnRequired]
 * @property {boolean} [returns] Whether the messenger opens this page after Confirm.
 * @property {string} [returnCode]
 * @property {string} verifier
 * @property {string} challenge Identifies the sign-in in `localStorage`. It is not secret.
 * @property {number} expiresAt Time by the local clock, in milliseconds; compared only with that clock.
 */
/** Milliseconds that a session can be pending. */
exports.LIFETIME = 600_000;
/** Milliseconds in which the return code must arrive after Confirm. */
exports.RETURN_TIME = 300_000;
const PREFIX = "taproof:";
/** @param {SignInOptions} options */
const keyOf = (options) => `${PREFIX}${(0, service_js_1.baseOf)(options)}:${options.projectId}`;
exports.keyOf = keyOf;
/**
 * Use the browser's storage. If the browser blocks it, a sign-in does not survive a reload or a new tab.
 *
 * @template T
 * @param {() => T} use
 * @returns {T | null}
 */
const attempt = (use) => {
    try {
        return use();
    }
    catch {
        return null;
    }
};
/** @param {SignInOptions} options */
const storageOf = ({ storage }) => /** @type {Storage} */ (storage === undefined ? sessionStorage : storage);
/** The name of a sign-in in `localStorage`. @param {SignInOptions} options @param {Kept} kept */
const nameOf = (options, { challenge }) => `${(0, exports.keyOf)(options)}:${challenge}`;
exports.nameOf = nameOf;
/** Return the sign-in of this tab, or null. @param {SignInOptions} options @returns {Kept | null} */
const ownKept = (options) => attempt(() => JSON.parse(storageOf(options).getItem((0, exports.keyOf)(options)) || "null"));
exports.ownKept = ownKept;
/** Keep a sign-in for a reload of this tab. @param {SignInOptions} options @param {Kept} kept */
const keep = (options, kept) => {
    attempt(() => storageOf(options).setItem((0, exports.keyOf)(options), JSON.stringify(kept)));
};
exports.keep = keep;
/** Return the code that this tab was trying before a reload, or "". @param {SignInOptions} options */
const keptCode = (options) => attempt(() => storageOf(options).getItem(`${(0, exports.keyOf)(options)}:code`)) || "";
exports.keptCode = keptCode;
/** Keep a return code for a reload of this tab while it is tried. @param {SignInOptions} options @param {string} code */
const keepCode = (options, code) => {
    attempt(() => storageOf(options).setItem(`${(0, exports.keyOf)(options)}:code`, code));
};
exports.keepCode = keepCode;
/** @param {SignInOptions} options */
const forgetCode = (options) => {
    attempt(() => storageOf(options).removeItem(`${(0, exports.keyOf)(options)}:code`));
};
exports.forgetCode = forgetCode;
/** Keep a sign-in for a new tab, unless the page chose its storage itself. @param {SignInOptions} options @param {Kept} kept */
const share = (options, kept) => {
    allShared();
    if (kept.returns && options.storage === undefined) {
        attempt(() => localStorage.setItem((0, exports.nameOf)(options, kept), JSON.stringify(kept)));
    }
};
exports.share = share;
/** Forget the sign-in of this tab, but no newer one. @param {SignInOptions} options @param {Kept} kept */
const forget = (options, kept) => {
    if ((0, exports.ownKept)(options)?.verifier === kept.verifier) {
        attempt(() => storageOf(options).removeItem((0, exports.keyOf)(options)));
    }
};
exports.forget = forget;
/**
 * End the sharing of a sign-in with other tabs. Only its time of expiry stays: if the messenger then opens the page, it must
 * recognise that this browser began the sign-in.
 *
 * @param {SignInOptions} options
 * @param {Kept} kept
 * @param {boolean} isUsed Whether this tab has received the result. The other tabs must not ask for it again.
 */
const unshare = (options, kept, isUsed) => {
    const name = (0, exports.nameOf)(options, kept);
    attempt(() => {
        // Another tab may have ended it before.
        if (localStorage.getItem(name)?.includes(kept.verifier)) {
            localStorage.setItem(name, JSON.stringify({ expiresAt: kept.expiresAt, used: isUsed || undefined }));
        }
    });
};
exports.unshare = unshare;
/** Return what `localStorage` has, by name, and remove what has expired. @returns {[string, Kept][]} */
const allShared = () => {
    /** @type {[string, Kept][]} */
    const found = [];
    attempt(() => {
        for (const name of Object.keys(localStorage).filter((each) => each.startsWith(PREFIX))) {
            const kept = attempt(() => JSON.parse(localStorage.getItem(name) || ""));
            if (kept?.expiresAt + exports.RETURN_TIME > Date.now()) {
                found.push([name, kept]);
            }
            else {
                localStorage.removeItem(name);
            }
        }
    });
    return found;
};
/**
 * Return the sign-ins of this browser that a return code may belong to, and remove expired ones.
 *
 * @param {SignInOptions} options
 * @returns {{ pending: Kept[], hasEnded: boolean, isElsewhere: boolean }} `pending`: the newest first. `hasEnded`: a sign-in
 *   of this project began and ended in this browser. `isElsewhere`: there are only sign-ins of other projects.
 */
const returning = (options) => {
    const found = allShared();
    const own = found.filter(([name]) => name.startsWith(`${(0, exports.keyOf)(options)}:`)).map(([, kept]) => kept);
    return {
        pending: own.filter(({ token }) => token).sort((one, other) => other.expiresAt - one.expiresAt),
        hasEnded: own.some(({ token }) => !token),
        isElsewhere: own.length === 0 && found.length > 0,
    };
};
exports.returning = returning;
