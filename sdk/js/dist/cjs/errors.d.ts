/**
 * The sign-in cannot continue. Temporary failures are retried instead: lost connections, proxy errors and rate limits.
 *
 * `code` is the service's `X-Error-Code`, such as `project_not_found` (404), `public_access_disabled` (401),
 * `project_paused` (400) or `session_not_found` (404), with the service's sentence as `message`; or one of this SDK's
 * own codes: `insecure_context`, `unexpected_answer`, `submit_failed`, `not_a_mini_app`, `no_connection`.
 */
export declare class SignInError extends Error {
    code: string;
    status: number;
    /**
     * @param {string} code
     * @param {string} message A sentence with the next step.
     * @param {number} [status] The HTTP status of the answer; 0 if there was no answer.
     */
    constructor(code: string, message: string, status?: number);
}
