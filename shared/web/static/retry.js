// Repeats what may succeed later, and notices when the network is lost and when it is back.
//
// Exports: Retry with run(signal, work, most), sleep(time, signal, lost).

import { mayPass } from "./service.js";

const LONGEST_WAIT = 120; // seconds that the service may ask to wait

/** @typedef {{ tries?: number, min?: number, max?: number }} Wait */

/** `wait` is {tries, min, max}, in milliseconds; `events` tells when there is a network again. */
export class Retry {
  #wait;
  #events;
  #tell;

  /**
   * `tell` is called with whether there is a network.
   * @param {{ wait?: Wait, events?: EventTarget }} options
   * @param {(online: boolean) => void} tell
   */
  constructor({ wait, events = globalThis }, tell) {
    this.#wait = { tries: 10, min: 500, max: 30_000, ...wait };
    this.#events = events;
    this.#tell = tell;
  }

  /**
   * Repeats work: without end while there is no network, and a few times when the service is busy.
   * After a try that moved something, it counts from the beginning.
   * @template T
   * @param {AbortSignal} signal
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async run(signal, work, most = Infinity) {
    const { tries, min, max } = this.#wait;
    for (let failed = 1, refused = 0; ; failed++) {
      try {
        const result = await work();
        this.#tell(true);
        return result;
      } catch (/** @type {any} */ error) {
        signal.throwIfAborted();
        if (error.moved) {
          failed = 1;
          refused = 0;
        }
        const lost = error.code === "network";
        if (!lost) refused++;
        if (!lost && !mayPass(error)) throw error;
        if (refused >= tries || failed >= most || error.retryAfter > LONGEST_WAIT) throw error;
        if (lost) this.#tell(false);
        const longest = Math.min(max, min * 2 ** Math.min(failed - 1, 20));
        const pause = Math.random() * longest; // or all would come back at once
        await this.sleep(pause + 1000 * error.retryAfter, signal, lost);
      }
    }
  }

  /**
   * Waits. If `lost`, it waits only until there is a network again.
   * @param {number} time @param {AbortSignal} signal
   * @returns {Promise<void>}
   */
  sleep(time, signal, lost = false) {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#events.removeEventListener?.("online", end);
        if (signal.aborted) reject(signal.reason);
        else resolve();
      };
      const timer = setTimeout(end, time);
      signal.addEventListener("abort", end);
      if (lost) this.#events.addEventListener?.("online", end);
      if (signal.aborted) end();
    });
  }
}
