"use strict";
// The three settings of an application, with the same names in every framework and language.
Object.defineProperty(exports, "__esModule", { value: true });
exports.settingsFrom = settingsFrom;
const secrets_js_1 = require("./secrets.js");
/**
 * @typedef {object} Settings
 * @property {string} baseUrl The service's address for browsers: `https://signin.example.com` (`TAPROOF_BASE_URL`).
 * @property {string} projectId `proj_…` (`TAPROOF_PROJECT_ID`).
 * @property {string[]} webhookSecret `whsec_…`, or several during a rotation, separated by commas
 *   (`TAPROOF_WEBHOOK_SECRET`). Not enumerable, to keep it out of logs; a copy by spread does not include it.
 */
const BASE_URL = /^https?:\/\/([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$/;
/**
 * Read the three settings from `process.env` or another object.
 *
 * @param {Record<string, string | undefined>} values
 * @returns {Readonly<Settings>}
 * @throws {TypeError} A setting is missing or invalid. The message names all such settings and contains no value.
 */
function settingsFrom(values) {
    const [baseUrl, projectId, secret] = ["TAPROOF_BASE_URL", "TAPROOF_PROJECT_ID", "TAPROOF_WEBHOOK_SECRET"].map((name) => values[name]?.trim() ?? "");
    const settings = { baseUrl: baseUrl.replace(/(?<!\/)\/+$/, ""), projectId };
    const wrong = [];
    if (!BASE_URL.test(settings.baseUrl)) {
        wrong.push("TAPROOF_BASE_URL must be Taproof's address for browsers, such as https://signin.example.com.");
    }
    if (!/^proj_[A-Za-z0-9]+$/.test(projectId)) {
        wrong.push("TAPROOF_PROJECT_ID must be the project's id (proj_…), as shown in Taproof's console.");
    }
    /** @type {string[]} */
    let webhookSecret = [];
    try {
        webhookSecret = (0, secrets_js_1.requireWebhookSecrets)(secret.split(/[\s,]+/));
    }
    catch {
        wrong.push("TAPROOF_WEBHOOK_SECRET must be the project's webhook secret (whsec_…).");
    }
    if (wrong.length > 0)
        throw new TypeError(wrong.join(" "));
    return Object.freeze(Object.defineProperty({ ...settings, webhookSecret }, "webhookSecret", { enumerable: false }));
}
