// The errors of the checks, with the same names as in the SDK for Python. No message contains a proof, webhook or secret.

/** The proof is not accepted: do not sign the user in. */
export class ProofError extends Error {}

/** It is not a Taproof proof: not a JWT, another issuer, or a claim that is missing or of the wrong type. */
export class ProofMalformed extends ProofError {}

/** The proof was not signed with HS256 and a given secret: it is forged, altered, or from before a rotation. */
export class ProofSignatureInvalid extends ProofError {}

/** The proof was signed for another project. */
export class ProofWrongProject extends ProofError {}

/** The proof is more than five minutes old. */
export class ProofExpired extends ProofError {}

/** The proof was issued in the future: one of the two servers' clocks is wrong. */
export class ProofNotYetValid extends ProofError {}

/** The proof was already accepted: somebody copied it, or the user sent it twice. */
export class ProofAlreadyUsed extends ProofError {}

/** The request may not come from the service: ignore it. */
export class WebhookError extends Error {}

/** The request is not a Taproof webhook: a header is missing, or the body is not an event. */
export class WebhookMalformed extends WebhookError {}

/** The webhook was not signed with a given secret: it is forged, altered, or from before or after a rotation. */
export class WebhookSignatureInvalid extends WebhookError {}

/** The webhook was signed longer ago than the tolerance: an old request was sent again, or a clock is wrong. */
export class WebhookTooOld extends WebhookError {}

/** The webhook was signed further in the future than the tolerance: one of the two servers' clocks is wrong. */
export class WebhookFromFuture extends WebhookError {}

/** A call to the service failed. */
export class TaproofApiError extends Error {
  /**
   * @param {string} message The problem and the remedy, in the service's words if it sent any.
   * @param {{ status?: number | null, code?: string, retryAfter?: number | null }} [details] `status`: the HTTP status of
   *   the answer, null if there was none. `code`: its `X-Error-Code`. `retryAfter`: its `Retry-After`, in seconds.
   */
  constructor(message, { status = null, code = "", retryAfter = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

// A minifier renames classes, but the name in a log must not change.
for (const [name, type] of Object.entries({
  ProofError, ProofMalformed, ProofSignatureInvalid, ProofWrongProject, ProofExpired, ProofNotYetValid,
  ProofAlreadyUsed, WebhookError, WebhookMalformed, WebhookSignatureInvalid, WebhookTooOld, WebhookFromFuture,
  TaproofApiError,
})) {
  Object.defineProperty(type.prototype, "name", { value: name });
}
