"use strict";
// The SDK for an application's own server: checks proofs and webhooks. It needs Node 20 or later.
var __createBinding = (this && this.__createBinding) || (Object.create ? (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    var desc = Object.getOwnPropertyDescriptor(m, k);
    if (!desc || ("get" in desc ? !m.__esModule : desc.writable || desc.configurable)) {
      desc = { enumerable: true, get: function() { return m[k]; } };
    }
    Object.defineProperty(o, k2, desc);
}) : (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    o[k2] = m[k];
}));
var __exportStar = (this && this.__exportStar) || function(m, exports) {
    for (var p in m) if (p !== "default" && !Object.prototype.hasOwnProperty.call(exports, p)) __createBinding(exports, m, p);
};
Object.defineProperty(exports, "__esModule", { value: true });
exports.verifyWebhook = exports.verifyProof = exports.settingsFrom = exports.MemoryGuard = exports.Client = void 0;
__exportStar(require("./errors.js"), exports);
var client_js_1 = require("./client.js");
Object.defineProperty(exports, "Client", { enumerable: true, get: function () { return client_js_1.Client; } });
var guard_js_1 = require("./guard.js");
Object.defineProperty(exports, "MemoryGuard", { enumerable: true, get: function () { return guard_js_1.MemoryGuard; } });
var settings_js_1 = require("./settings.js");
Object.defineProperty(exports, "settingsFrom", { enumerable: true, get: function () { return settings_js_1.settingsFrom; } });
var proof_js_1 = require("./proof.js");
Object.defineProperty(exports, "verifyProof", { enumerable: true, get: function () { return proof_js_1.verifyProof; } });
var webhook_js_1 = require("./webhook.js");
Object.defineProperty(exports, "verifyWebhook", { enumerable: true, get: function () { return webhook_js_1.verifyWebhook; } });
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
