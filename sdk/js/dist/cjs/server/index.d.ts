export * from "./errors.js";
export { Client } from "./client.js";
export { MemoryGuard } from "./guard.js";
export { settingsFrom } from "./settings.js";
export { verifyProof } from "./proof.js";
export { verifyWebhook } from "./webhook.js";
export type StartedSignIn = import("./client.js").StartedSignIn;
export type SessionResult = import("./client.js").SessionResult;
export type Identity = import("./proof.js").Identity;
export type ProofOptions = import("./proof.js").ProofOptions;
export type Settings = import("./settings.js").Settings;
export type WebhookEvent = import("./webhook.js").WebhookEvent;
export type SingleUseGuard<Answer = boolean | Promise<boolean>> = import("./guard.js").SingleUseGuard<Answer>;
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
