export type Kept = import("./kept.js").Kept;
export type SignInOptions = import("./sign_in.js").SignInOptions;
export type SignInResult = import("./sign_in.js").SignInResult;
/** The media query for phones, where the messenger covers the page. */
export declare const PHONE = "(pointer:coarse) and (max-width:600px),(pointer:coarse) and (max-height:500px)";
/** Keys of the sign-ins that this page waits for. @type {Set<string>} */
export declare const running: Set<string>;
/**
 * @param {SignInOptions} options
 * @param {Kept | null} own The sign-in of this tab.
 * @param {Kept[]} [candidates] The sign-ins that the return code from the page's address may belong to, each with the code.
 * @param {SignInResult} [lost] The result if it belongs to none.
 * @returns {Promise<SignInResult>}
 */
export declare const run: (options: SignInOptions, own: Kept | null, candidates?: Kept[], lost?: SignInResult) => Promise<SignInResult>;
