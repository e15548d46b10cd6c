// Measures how far an upload is, and how fast.
//
// Exports: Meter with begin(arrived), set(number, bytes), sent, rate().

const RATE_OVER = 5_000; // milliseconds that the rate is averaged over

/** Counts the bytes that have been sent of each part. */
export class Meter {
  /** @type {Map<number, number>} */
  #parts = new Map();
  /** @type {{ bytes: number, now: number }[]} */
  #moves = []; // how many bytes lately, and when
  /** @type {number | null} */
  #since = null;

  /**
   * Begins with the parts that the service has.
   * @param {{ number: number, size: number }[]} arrived
   */
  begin(arrived) {
    this.#parts = new Map(arrived.map(({ number, size }) => [number, size]));
  }

  /**
   * Notes how much of a part has been sent. If this is less than before, the part is sent again.
   * @param {number} number @param {number} bytes
   */
  set(number, bytes, now = performance.now()) {
    const moved = bytes - (this.#parts.get(number) ?? 0);
    this.#parts.set(number, bytes);
    if (moved <= 0) return;
    this.#since ??= now;
    this.#moves.push({ bytes: moved, now });
  }

  get sent() {
    let sum = 0;
    for (const bytes of this.#parts.values()) sum += bytes;
    return sum;
  }

  /** Returns how many bytes have moved in a second. */
  rate(now = performance.now()) {
    this.#moves = this.#moves.filter((move) => now - move.now < RATE_OVER);
    const over = Math.min(now - (this.#since ?? now), RATE_OVER);
    const moved = this.#moves.reduce((sum, { bytes }) => sum + bytes, 0);
    return (moved / Math.max(over, 500)) * 1000;
  }
}
