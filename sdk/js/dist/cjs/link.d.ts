/**
 * @typedef {object} SignInLink
 * @property {string} deeplink The https link, for a QR code and for every device.
 * @property {string | null} appLink The same link as `tg://`, which opens the app without a browser; null unless
 *   `deeplink` is on t.me.
 * @property {string} command The message to send to the bot if an app opens it but drops the link's payload.
 * @property {string | null} matchCode The number to choose in the messenger, such as "42": show it next to the link.
 *   null unless the project's `match_code` is on.
 * @property {boolean} returnRequired Whether the sign-in must be finished in this browser: show no QR code, because only
 *   the page that the messenger opens on this device gets the result.
 */
export type SignInLink = {
    /**
     * The https link, for a QR code and for every device.
     */
    deeplink: string;
    /**
     * The same link as `tg://`, which opens the app without a browser; null unless
     * `deeplink` is on t.me.
     */
    appLink: string | null;
    /**
     * The message to send to the bot if an app opens it but drops the link's payload.
     */
    command: string;
    /**
     * The number to choose in the messenger, such as "42": show it next to the link.
     * null unless the project's `match_code` is on.
     */
    matchCode: string | null;
    /**
     * Whether the sign-in must be finished in this browser: show no QR code, because only
     * the page that the messenger opens on this device gets the result.
     */
    returnRequired: boolean;
};
/**
 * Return all forms of the link from the service.
 *
 * @param {unknown} deeplink
 * @param {string | null} [matchCode]
 * @param {boolean} [returnRequired]
 * @returns {SignInLink | null} null unless it is an http or https link: a page must never open a `javascript:` link.
 */
export declare const linkOf: (deeplink: unknown, matchCode?: string | null, returnRequired?: boolean) => SignInLink | null;
