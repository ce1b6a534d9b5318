"use strict";
// Accepts each proof only once: a proof is valid for five minutes, and a copy could be sent again during that time.
Object.defineProperty(exports, "__esModule", { value: true });
exports.MemoryGuard = void 0;
const node_crypto_1 = require("node:crypto");
/**
 * Remembers accepted proofs. `MemoryGuard` is enough for one process. For several processes, pass your own object that
 * uses shared storage; its `take` can return a promise. With Redis:
 *
 *     const guard = {
 *       async take(sessionToken, expiresAt) {
 *         const key = "taproof:" + createHash("sha256").update(sessionToken).digest("base64url");
 *         return (await redis.set(key, "1", { NX: true, EXAT: expiresAt + 60 })) === "OK";
 *       },
 *     };
 *
 * `take` must decide in one step, like SET NX or an INSERT into a unique column: a read followed by a write would accept
 * two concurrent requests. If `take` throws, the sign-in fails with that error.
 *
 * @template [Answer=boolean | Promise<boolean>]
 * @typedef {object} SingleUseGuard
 * @property {(sessionToken: string, expiresAt: number) => Answer} take Returns true only for the
 *   first call with a token. `expiresAt`: the time until which to remember the token, in whole seconds since the epoch.
 */
const SWEEP_EVERY = 60;
const MARGIN = 60; // Seconds that a token is remembered after its expiry, in case a machine's clock is set back a little.
/** Remembers proofs in this process. It stores only hashes of the session tokens and forgets expired ones. */
class MemoryGuard {
    /** @type {Map<string, number>} */
    #taken = new Map();
    #sweepAt = 0;
    #now;
    /** @param {{ now?: () => number }} [options] `now`: the clock, in seconds since the epoch, for tests. */
    constructor({ now = () => Date.now() / 1000 } = {}) {
        this.#now = now;
    }
    /**
     * @param {string} sessionToken
     * @param {number} expiresAt
     * @returns {boolean}
     */
    take(sessionToken, expiresAt) {
        const instant = this.#now();
        if (instant >= this.#sweepAt) {
            for (const [key, end] of this.#taken)
                if (end <= instant)
                    this.#taken.delete(key);
            this.#sweepAt = instant + SWEEP_EVERY;
        }
        const key = (0, node_crypto_1.createHash)("sha256").update(sessionToken).digest("base64");
        if (this.#taken.has(key))
            return false;
        // The time is never in the past, even if `expiresAt` was set by another machine's clock.
        this.#taken.set(key, Math.max(expiresAt, instant) + MARGIN);
        return true;
    }
    /** The number of remembered proofs. */
    get size() {
        return this.#taken.size;
    }
}
exports.MemoryGuard = MemoryGuard;
