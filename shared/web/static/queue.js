// Lets parts wait: those that have been read for a sender, and those that a sender has for a connection.
//
// Exports: Queue with parts, put(part), take(), end(error); Lines with take(signal).

/**
 * A part of a file, and where it goes: `signed` is asked for `at` a time.
 * @typedef {{ number: number, size: number, sum: string, signed?: Promise<Signed> | null, at?: number }} Part
 * @typedef {{ method: string, url: string, headers: { [name: string]: string } }} Signed
 */

const AHEAD = 8; // parts that are read and waiting to be sent

/** Hands parts that have been read to the senders. It holds only a few. */
export class Queue {
  /** @type {Part[]} */
  parts = [];
  #ended = false;
  /** @type {unknown} */
  #error = null;
  #wake = () => {};
  /** @type {Promise<void> | null} */
  #change = null;

  /** @param {Part} part */
  async put(part) {
    while (this.parts.length >= AHEAD && !this.#error) await this.#changed();
    if (this.#error) throw this.#error;
    this.parts.push(part);
    this.#wake();
  }

  /**
   * Returns the next part, or undefined at the end.
   * @returns {Promise<Part | undefined>}
   */
  async take() {
    while (!this.parts.length && !this.#ended) await this.#changed();
    if (this.#error) throw this.#error;
    this.#wake();
    return this.parts.shift();
  }

  /** @param {unknown} error */
  end(error = null) {
    this.#ended = true;
    this.#error ??= error;
    this.#wake();
  }

  #changed() {
    this.#change ??= new Promise((/** @type {() => void} */ resolve) => {
      this.#wake = () => {
        this.#change = null;
        this.#wake = () => {};
        resolve();
      };
    });
    return this.#change;
  }
}

/**
 * Limits how many parts are sent at once. A browser has six connections to a host for all its
 * uploads and requests, and a part that waits for one would look like a lost connection.
 */
export class Lines {
  /** @type {(() => void)[]} */
  #waiting = [];

  /** @param {number} free */
  constructor(free) {
    this.free = free;
  }

  /**
   * Waits for a free line. Returns a function that gives it back.
   * @param {AbortSignal} signal
   */
  async take(signal) {
    signal.throwIfAborted();
    if (this.free > 0) this.free--;
    else await this.#wait(signal);
    return () => {
      const next = this.#waiting.shift();
      if (next) next();
      else this.free++;
    };
  }

  /** @param {AbortSignal} signal @returns {Promise<void>} */
  #wait(signal) {
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#waiting = this.#waiting.filter((one) => one !== go);
        reject(signal.reason);
      };
      const go = () => {
        signal.removeEventListener("abort", stop);
        resolve();
      };
      signal.addEventListener("abort", stop, { once: true });
      this.#waiting.push(go);
    });
  }
}
