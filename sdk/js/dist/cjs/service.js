"use strict";
/** @typedef {import("./sign_in.js").SignInOptions} SignInOptions */
Object.defineProperty(exports, "__esModule", { value: true });
exports.post = exports.baseOf = void 0;
/** @param {SignInOptions} options */
const baseOf = ({ baseUrl }) => (baseUrl || new URL("file:///").origin).replace(/\/$/, "");
exports.baseOf = baseOf;
/**
 * Call a public endpoint of the service.
 *
 * @param {SignInOptions} options
 * @param {string} verb
 * @param {object} body
 * @param {AbortSignal} [signal] Without it, the call survives the end of the page.
 */
const post = (options, verb, body, signal) => fetch(`${(0, exports.baseOf)(options)}/api/v1/${verb}/public`, {
    method: "POST",
    credentials: "omit",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ project_id: options.projectId, ...body }),
    keepalive: !signal,
    signal,
});
exports.post = post;
