"use strict";
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
Object.defineProperty(exports, "__esModule", { value: true });
exports.linkOf = void 0;
/**
 * Return all forms of the link from the service.
 *
 * @param {unknown} deeplink
 * @param {string | null} [matchCode]
 * @param {boolean} [returnRequired]
 * @returns {SignInLink | null} null unless it is an http or https link: a page must never open a `javascript:` link.
 */
const linkOf = (deeplink, matchCode = null, returnRequired = false) => {
    const parts = /^https?:\/\/(t\.me\/(\w+)|[^?#]+)\?start=([\w-]+)$/.exec(String(deeplink));
    return (parts && {
        deeplink: parts[0],
        appLink: parts[2] && parts[0][4] === "s" ? `tg://resolve?domain=${parts[2]}&start=${parts[3]}` : null,
        command: `/start ${parts[3]}`,
        matchCode,
        returnRequired,
    });
};
exports.linkOf = linkOf;
