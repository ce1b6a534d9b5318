/** @typedef {import("./sign_in.js").SignInOptions} SignInOptions */

/** @param {SignInOptions} options */
export const baseOf = ({ baseUrl }) => (baseUrl || new URL(import.meta.url).origin).replace(/\/$/, "");

/**
 * Call a public endpoint of the service.
 *
 * @param {SignInOptions} options
 * @param {string} verb
 * @param {object} body
 * @param {AbortSignal} [signal] Without it, the call survives the end of the page.
 */
export const post = (options, verb, body, signal) =>
  fetch(`${baseOf(options)}/api/v1/${verb}/public`, {
    method: "POST",
    credentials: "omit",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ project_id: options.projectId, ...body }),
    keepalive: !signal,
    signal,
  });
