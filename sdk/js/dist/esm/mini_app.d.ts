import { SignInError } from "./errors.js";
export { SignInError };
export type MiniAppOptions = {
    projectId: string;
    /**
     * The service's address; by default, the origin that this module was loaded from.
     */
    baseUrl?: string;
    /**
     * The data that Telegram signed; by default `Telegram.WebApp.initData`.
     */
    initData?: string;
};
/**
 * @typedef {object} MiniAppOptions
 * @property {string} projectId
 * @property {string} [baseUrl] The service's address; by default, the origin that this module was loaded from.
 * @property {string} [initData] The data that Telegram signed; by default `Telegram.WebApp.initData`.
 */
/**
 * Sign in the user who opened this page as a Telegram Mini App. There is no link and nothing to confirm.
 *
 * Each start of the Mini App signs in once, so the call is not repeated after a failure.
 *
 * @param {MiniAppOptions} options
 * @returns {Promise<import("./sign_in.js").Confirmed>} Rejects only with a `SignInError`.
 */
export declare const signInMiniApp: ({ projectId, baseUrl, initData }: MiniAppOptions) => Promise<import("./sign_in.js").Confirmed>;
