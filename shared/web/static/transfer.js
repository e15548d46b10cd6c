// Reads the parts of a source and sends them into a session, several at once, each with its checksum.
//
// Exports: Transfer with take(status), order(), sum(number, signal), whole(), send(arrived, signal).

import { Crc64, text64 } from "./crc.js";
import { Queue } from "./queue.js";
import { AT_ONCE, transport } from "./transport.js";
import { ChangedError } from "./worker.js";

/** @import { Sum64 } from "./crc.js" */
/** @import { Meter } from "./meter.js" */
/** @import { Part, Signed } from "./queue.js" */
/** @import { Retry } from "./retry.js" */
/** @import { Arrived, Session, Status } from "./session.js" */
/** @import { Cut, Options, Source } from "./upload.js" */
/** @import { Pool } from "./worker.js" */

const READING = 2; // parts whose checksum is computed at once
const SIGNED_LIFE = 5 * 60_000; // the service says 15 minutes, by its own clock
const UNREACHABLE = 30; // lost connections of a part, while the service answers; one that took no byte counts as 3

/** The parts of one upload. `tell` has sending(), as a part is about to be sent, and moved(), as bytes have. */
export class Transfer {
  #source;
  #options;
  #session;
  #retry;
  #meter;
  #tell;

  /** @type {string | null} */
  #id = null; // of the session that divides the source:
  /** @type {Cut} */
  #parts = /** @type {any} */ (null);
  /** @type {Map<number, Sum64>} */
  #sums = new Map(); // of the parts, by their numbers

  /**
   * @param {Source} source
   * @param {{ session: Session, retry: Retry, meter: Meter }} parts
   * @param {Options & { pool: Pool }} options
   * @param {{ sending: () => void, moved: () => void }} tell
   */
  constructor(source, { session, retry, meter }, options, tell) {
    this.#source = source;
    this.#session = session;
    this.#retry = retry;
    this.#meter = meter;
    this.#options = options;
    this.#tell = tell;
  }

  /**
   * Takes over how a session divides the source, and what has arrived.
   * @param {Status} status
   */
  take({ id, partSize, arrived }) {
    if (this.#id !== id) {
      this.#id = id;
      this.#parts = this.#source.cut(partSize, this.#options.pool);
      this.#sums.clear();
    }
    this.#meter.begin(arrived ?? []);
  }

  /** Returns the numbers of all parts, in the order in which they are best read. */
  order() {
    return this.#parts.order();
  }

  /**
   * Returns the checksum of a part.
   * @param {number} number @param {AbortSignal} signal
   */
  async sum(number, signal) {
    signal.throwIfAborted();
    const known = this.#sums.get(number);
    if (known) return known;
    const sum = await this.#parts.sum(number, { signal });
    signal.throwIfAborted();
    this.#sums.set(number, sum);
    if (number === 1) this.#session.learn(text64(sum));
    return sum;
  }

  /** Returns the checksum of the whole, once those of all parts are known. */
  whole() {
    const whole = new Crc64();
    for (let n = 1; n <= this.#session.parts; n++) {
      whole.append(/** @type {Sum64} */ (this.#sums.get(n)), this.#session.size(n));
    }
    return whole.text;
  }

  /**
   * Reads all parts and sends those that have not arrived. What has arrived is read too, but last:
   * the checksum of the whole needs it, and its bytes may differ. It ends at the first error.
   * @param {Map<number, Arrived>} arrived @param {AbortSignal} outer
   */
  async send(arrived, outer) {
    const order = this.order();
    const numbers = [...order.filter((n) => !arrived.has(n)), ...order.filter((n) => arrived.has(n))].values();
    const controller = new AbortController();
    const { signal } = controller;
    const queue = new Queue();
    const stop = () => controller.abort(outer.reason);
    outer.addEventListener("abort", stop);
    signal.addEventListener("abort", () => queue.end(signal.reason));
    if (outer.aborted) stop();
    let readers = READING;
    const read = async () => {
      for (const number of numbers) await this.#read(number, arrived.get(number), queue, signal);
      if (--readers === 0) queue.end();
    };
    const send = async () => {
      for (let part; (part = await queue.take());) await this.#sendPart(part, queue, signal);
    };
    const lanes = [...Array.from({ length: READING }, read), ...Array.from({ length: AT_ONCE }, send)];
    try {
      await Promise.all(lanes);
    } catch (error) {
      controller.abort(error);
      throw error;
    } finally {
      await Promise.allSettled(lanes);
      outer.removeEventListener("abort", stop);
    }
  }

  /** @param {number} number @param {Arrived | undefined} there @param {Queue} queue @param {AbortSignal} signal */
  async #read(number, there, queue, signal) {
    const sum = text64(await this.sum(number, signal));
    const size = this.#session.size(number);
    if (there?.crc64nvme === sum && there.size === size) return;
    this.#meter.set(number, 0);
    await queue.put({ number, size, sum });
  }

  /** @param {Part} part @param {Queue} queue @param {AbortSignal} signal */
  async #sendPart(part, queue, signal) {
    let unreached = 0;
    await this.#retry.run(signal, async () => {
      const address = await this.#address(part, queue, signal);
      this.#tell.sending();
      try {
        const blob = await this.#parts.blob(part.number, { signal });
        await transport({ ...address, url: this.#session.near(address.url) }, blob, {
          XMLHttpRequest: this.#options.XMLHttpRequest,
          signal,
          onprogress: (sent) => this.#moved(part.number, sent),
        });
      } catch (/** @type {any} */ error) {
        this.#meter.set(part.number, 0);
        part.signed = null;
        signal.throwIfAborted();
        if (error.status === 0 || error.status === 400) await this.#unchanged(part, signal);
        // The address is too old, bytes were changed on the way, or an earlier try is still running.
        if ([400, 403, 409].includes(error.status)) error.again = true;
        // The service has just answered, or there would be no address.
        if (error.code === "network") unreached += error.moved ? 1 : 3;
        if (unreached >= UNREACHABLE) error.code = "unreachable";
        throw error;
      }
    });
    this.#moved(part.number, part.size);
  }

  /** @param {number} number @param {number} bytes */
  #moved(number, bytes) {
    this.#meter.set(number, bytes);
    this.#tell.moved();
  }

  // unchanged throws if a part has other bytes than before, which may be why the service refused it.
  /** @param {Part} part @param {AbortSignal} signal */
  async #unchanged({ number, sum }, signal) {
    const now = text64(await this.#parts.sum(number, { fresh: true, signal }));
    if (now !== sum) throw new ChangedError();
  }

  // address returns where a part goes. One request gets the addresses of all parts that wait.
  /** @param {Part} part @param {Queue} queue @param {AbortSignal} signal @returns {Promise<Signed>} */
  async #address(part, queue, signal) {
    if (!isFresh(part)) {
      const batch = [part, ...queue.parts.filter((waiting) => !isFresh(waiting))]; // a request may ask for 100
      const signing = this.#session.sign(batch, signal);
      for (const one of batch) {
        one.at = Date.now();
        const signed = signing.then((found) => /** @type {Signed} */ (found.get(one.number)));
        one.signed = signed;
        signed.catch(() => {
          one.signed = null;
        });
      }
    }
    return /** @type {Promise<Signed>} */ (part.signed);
  }
}

// isFresh reports whether a part still may be sent where it was told to.
/** @param {Part} part */
function isFresh({ signed, at = 0 }) {
  return signed && Date.now() - at < SIGNED_LIFE && Date.now() >= at;
}
