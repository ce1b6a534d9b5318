// Single use: a proof holds for five minutes, so one that was copied could be sent again within them.

import { createHash } from "node:crypto";

/**
 * What remembers the proofs that were accepted. `MemoryGuard` does for one process; for several give an object of your
 * own over what they share, whose `take` may return a promise. With Redis:
 *
 *     const guard = {
 *       async take(sessionToken, expiresAt) {
 *         const key = "taproof:" + createHash("sha256").update(sessionToken).digest("base64url");
 *         return (await redis.set(key, "1", { NX: true, EXAT: expiresAt + 60 })) === "OK";
 *       },
 *     };
 *
 * `take` must decide in one step, as SET NX does or an INSERT into a unique column: a look and then a write lets two
 * requests through that come together. When it throws, the sign-in fails with what it threw.
 *
 * @template [Answer=boolean | Promise<boolean>]
 * @typedef {object} SingleUseGuard
 * @property {(sessionToken: string, expiresAt: number) => Answer} take Returns true the first time only. `expiresAt`:
 *   until when it must be remembered, in whole seconds since the epoch.
 */

const SWEEP_EVERY = 60;
const MARGIN = 60; // Seconds that a token is remembered beyond its end: a machine's clock may be set back a little.

/** Remembers in this process alone, and until it ends. It keeps hashes of the tokens, and forgets what has expired. */
export class MemoryGuard {
  /** @type {Map<string, number>} */
  #taken = new Map();
  #sweepAt = 0;
  #now;

  /** @param {{ now?: () => number }} [options] `now`: the clock, in seconds since the epoch, as a test would give. */
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
      for (const [key, end] of this.#taken) if (end <= instant) this.#taken.delete(key);
      this.#sweepAt = instant + SWEEP_EVERY;
    }
    const key = createHash("sha256").update(sessionToken).digest("base64");
    if (this.#taken.has(key)) return false;
    // Never forgotten at once, whatever the clock says that `expiresAt` was reckoned by.
    this.#taken.set(key, Math.max(expiresAt, instant) + MARGIN);
    return true;
  }

  /** How many are remembered just now. */
  get size() {
    return this.#taken.size;
  }
}
