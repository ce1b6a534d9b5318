// The errors of the checks: the same names as in the SDK for Python. No message holds a proof, a webhook or a secret.

/** The proof does not show who the user is: do not sign them in. */
export class ProofError extends Error {}

/** It is not a Taproof proof: not a JWT, another issuer, or a claim that is missing or of the wrong type. */
export class ProofMalformed extends ProofError {}

/** It was not signed with HS256 and any of the secrets given: forged, altered, or signed before a rotation. */
export class ProofSignatureInvalid extends ProofError {}

/** It was signed for another project. */
export class ProofWrongProject extends ProofError {}

/** Its five minutes are over. */
export class ProofExpired extends ProofError {}

/** It was issued in the future: one of the two servers' clocks is wrong. */
export class ProofNotYetValid extends ProofError {}

/** It was accepted before: somebody sends a copy, or the same form was sent twice. */
export class ProofAlreadyUsed extends ProofError {}

/** The request does not show that the service sent it: do nothing that it says. */
export class WebhookError extends Error {}

/** It is not a Taproof webhook: a header is missing, or the body is not an event. */
export class WebhookMalformed extends WebhookError {}

/** It was not signed with any of the secrets given: forged, altered, or signed before or after a rotation. */
export class WebhookSignatureInvalid extends WebhookError {}

/** It was signed longer ago than the tolerance: an old request sent again, or a clock that is wrong. */
export class WebhookTooOld extends WebhookError {}

/** It was signed further in the future than the tolerance: one of the two servers' clocks is wrong. */
export class WebhookFromFuture extends WebhookError {}

// A name in a log must survive a minifier, which renames classes.
for (const [name, type] of Object.entries({
  ProofError, ProofMalformed, ProofSignatureInvalid, ProofWrongProject, ProofExpired, ProofNotYetValid,
  ProofAlreadyUsed, WebhookError, WebhookMalformed, WebhookSignatureInvalid, WebhookTooOld, WebhookFromFuture,
})) {
  Object.defineProperty(type.prototype, "name", { value: name });
}
