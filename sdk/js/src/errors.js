/**
 * A sign-in that cannot go on. Nothing that passes by itself is one: lost networks, a proxy's errors and rate limits
 * are waited out.
 *
 * `code` is the service's `X-Error-Code`, such as `project_not_found` (404), `public_access_disabled` (401),
 * `project_paused` (400) or `session_not_found` (404), with the service's sentence as `message`; or one of this SDK's
 * own: `insecure_context`, `unexpected_answer`, `submit_failed`.
 */
export class SignInError extends Error {
  /**
   * @param {string} code
   * @param {string} message A sentence that says what to do next.
   * @param {number} [status] The HTTP status that said so; 0 when no answer did.
   */
  constructor(code, message, status = 0) {
    super(message);
    this.name = "SignInError";
    this.code = code;
    this.status = status;
  }
}
