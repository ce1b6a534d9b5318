export type SignInOptions = import("./sign_in.js").SignInOptions;
export type Kept = {
    token: string;
    deeplink: string;
    matchCode?: string | null;
    returnRequired?: boolean;
    /**
     * Whether the messenger opens this page after Confirm.
     */
    returns?: boolean;
    returnCode?: string;
    verifier: string;
    /**
     * Identifies the sign-in in `localStorage`. It is not secret.
     */
    challenge: string;
    /**
     * Time by the local clock, in milliseconds; compared only with that clock.
     */
    expiresAt: number;
};
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
export declare const LIFETIME = 600000;
/** Milliseconds in which the return code must arrive after Confirm. */
export declare const RETURN_TIME = 300000;
/** @param {SignInOptions} options */
export declare const keyOf: (options: SignInOptions) => string;
/** The name of a sign-in in `localStorage`. @param {SignInOptions} options @param {Kept} kept */
export declare const nameOf: (options: SignInOptions, { challenge }: Kept) => string;
/** Return the sign-in of this tab, or null. @param {SignInOptions} options @returns {Kept | null} */
export declare const ownKept: (options: SignInOptions) => Kept | null;
/** Keep a sign-in for a reload of this tab. @param {SignInOptions} options @param {Kept} kept */
export declare const keep: (options: SignInOptions, kept: Kept) => void;
/** Return the code that this tab was trying before a reload, or "". @param {SignInOptions} options */
export declare const keptCode: (options: SignInOptions) => string;
/** Keep a return code for a reload of this tab while it is tried. @param {SignInOptions} options @param {string} code */
export declare const keepCode: (options: SignInOptions, code: string) => void;
/** @param {SignInOptions} options */
export declare const forgetCode: (options: SignInOptions) => void;
/** Keep a sign-in for a new tab, unless the page chose its storage itself. @param {SignInOptions} options @param {Kept} kept */
export declare const share: (options: SignInOptions, kept: Kept) => void;
/** Forget the sign-in of this tab, but no newer one. @param {SignInOptions} options @param {Kept} kept */
export declare const forget: (options: SignInOptions, kept: Kept) => void;
/**
 * End the sharing of a sign-in with other tabs. Only its time of expiry stays: if the messenger then opens the page, it must
 * recognise that this browser began the sign-in.
 *
 * @param {SignInOptions} options
 * @param {Kept} kept
 * @param {boolean} isUsed Whether this tab has received the result. The other tabs must not ask for it again.
 */
export declare const unshare: (options: SignInOptions, kept: Kept, isUsed: boolean) => void;
/**
 * Return the sign-ins of this browser that a return code may belong to, and remove expired ones.
 *
 * @param {SignInOptions} options
 * @returns {{ pending: Kept[], hasEnded: boolean, isElsewhere: boolean }} `pending`: the newest first. `hasEnded`: a sign-in
 *   of this project began and ended in this browser. `isElsewhere`: there are only sign-ins of other projects.
 */
export declare const returning: (options: SignInOptions) => {
    pending: Kept[];
    hasEnded: boolean;
    isElsewhere: boolean;
};
