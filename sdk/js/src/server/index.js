// The SDK for an application's own server: checks proofs and webhooks. It needs Node 20 or later.

export * from "./errors.js";
export { Client } from "./client.js";
export { MemoryGuard } from "./guard.js";
export { settingsFrom } from "./settings.js";
export { verifyProof } from "./proof.js";
export { verifyWebhook } from "./webhook.js";

/** @typedef {import("./client.js").StartedSignIn} StartedSignIn */
/** @typedef {import("./client.js").SessionResult} SessionResult */
/** @typedef {import("./proof.js").Identity} Identity */
/** @typedef {import("./proof.js").ProofOptions} ProofOptions */
/** @typedef {import("./settings.js").Settings} Settings */
/** @typedef {import("./webhook.js").WebhookEvent} WebhookEvent */
/**
 * @template [Answer=boolean | Promise<boolean>]
 * @typedef {import("./guard.js").SingleUseGuard<Answer>} SingleUseGuard
 */
