// Sends a file or a bundle to Ferry in an upload session: in parts, four at once, each with its
// checksum. It resumes by itself after a lost connection, and after the tab was closed if the page
// resumes what store.js remembers. It follows shared/client/put.go. This is its state; session.js
// speaks of the session, transfer.js reads and sends the parts, transport.js sends the bytes of one.
//
//   const upload = new Upload(fileSource(file), { m: ["ann@example.com"], expires: "7d", store, scope: "user:bob" });
//   upload.onchange = ({ state, sent, total, rate, left, error }) => ...;
//   const { file } = await upload.start();        // its links; throws an UploadError
//   upload.pause(); upload.resume(); await upload.cancel();
//
//   new Upload(bundleSource("holiday.zip", new Bundle(choice.entries)), ...)
//   new Upload(source, { store, resume: record })           // a record of store.list()
//   const guest = await join(token);                        // for the page of a request
//   new Upload(source, { guest, by: "Ann" })
//
// States: 'paused' (also before the start), 'hashing' (it reads, and has sent nothing yet),
// 'sending', 'offline' (it waits for the network and resumes by itself), 'completing', 'done',
// 'failed'. After a failure start() retries with what has arrived; a cancelled upload is a failed
// one whose error has the code 'cancelled'.
//
// Options: names, which the page lists, and those of POST uploads that these are, password and partSize;
// guest; store, scope, handles, resume (see store.js); for tests and other pages base, fetch,
// XMLHttpRequest, pool, wait (of retries: {tries, min, max} in milliseconds).
//
// Exports: Upload with start(), pause(), resume(), cancel(), snapshot(), onchange; fileSource(file, name),
// bundleSource(name, bundle). join and UploadError are those of service.js.

import { text64 } from "./crc.js";
import { Meter } from "./meter.js";
import { Retry } from "./retry.js";
import { Service, UploadError } from "./service.js";
import { Session } from "./session.js";
import { Transfer } from "./transfer.js";
import { ChangedError, Pool } from "./worker.js";

export { join, UploadError } from "./service.js";

/** @import { Bundle } from "./bundle.js" */
/** @import { Sum64 } from "./crc.js" */
/** @import { Wait } from "./retry.js" */
/** @import { Guest } from "./service.js" */
/** @import { Status } from "./session.js" */
/** @import { Store, Unfinished } from "./store.js" */
/**
 * What is sent, and its parts.
 * @typedef {{
 *   name: string, type: string, length: number, bundle: boolean, entries?: string[],
 *   cut: (size: number, pool: Pool) => Cut,
 * }} Source
 * @typedef {{
 *   order(): number[],
 *   sum(number: number, options: { fresh?: boolean, signal?: AbortSignal }): Promise<Sum64>,
 *   blob(number: number, options: { signal?: AbortSignal }): Blob | Promise<Blob>,
 * }} Cut
 * @typedef {{
 *   names?: string[], guest?: Guest | null, store?: Store, scope?: string, handles?: FileSystemHandle[],
 *   resume?: Unfinished,
 *   base?: string, fetch?: typeof fetch, XMLHttpRequest?: typeof XMLHttpRequest, pool?: Pool, wait?: Wait,
 *   events?: EventTarget, [asked: string]: any,
 * }} Options
 * @typedef {{ id: number, file: any, answer: { files: any[] } }} Result
 * @typedef {{
 *   state: string, sent: number, total: number, rate: number, left: number | null, error: any, id: string | null,
 * }} Snapshot
 * @typedef {{
 *   promise: Promise<Result>, resolve: (result: Result) => void, reject: (error: unknown) => void,
 * }} Ending
 * @typedef {{ controller: AbortController, over: Promise<void> | null }} Run
 */

const RIVALS = 5; // retries, as another tab may have completed or ended the session
const EMIT_EVERY = 100; // milliseconds

/**
 * A source of one file, or of any Blob with a name.
 * @param {File} file
 * @returns {Source}
 */
export function fileSource(file, name = file.name) {
  return {
    name,
    type: file.type,
    length: file.size,
    bundle: false,
    cut: (size, pool) => new Sections(file, size, pool),
  };
}

/**
 * A source of several files: a Bundle, see bundle.js.
 * @param {string} name @param {Bundle} bundle
 * @returns {Source}
 */
export function bundleSource(name, bundle) {
  const entries = bundle.entries.map(({ path }) => path);
  return {
    name,
    type: "application/zip",
    length: bundle.length,
    bundle: true,
    entries,
    cut: (size, pool) => bundle.cut(size, pool),
  };
}

// Sections are the parts of a file, with the same methods as the Parts of a bundle.
class Sections {
  #file;
  #size;
  #pool;

  /** @param {File} file @param {number} size @param {Pool} pool */
  constructor(file, size, pool) {
    this.#file = file;
    this.#size = size;
    this.#pool = pool;
  }

  get count() {
    return Math.max(1, Math.ceil(this.#file.size / this.#size));
  }

  order() {
    return Array.from({ length: this.count }, (_, i) => i + 1);
  }

  /** @param {number} number @param {{ signal?: AbortSignal }} options */
  async sum(number, { signal } = {}) {
    const [{ crc64 }] = await this.#pool.sums([this.blob(number)], { signal });
    return crc64;
  }

  /** @param {number} number */
  blob(number) {
    return this.#file.slice((number - 1) * this.#size, number * this.#size);
  }
}

/** One upload. It does nothing before start(). */
export class Upload {
  /**
   * Is called with a snapshot() when something changes, at most ten times a second while bytes move.
   * @type {((snapshot: Snapshot) => void) | null}
   */
  onchange = null;

  #source;
  #retry;
  #session;
  #transfer;
  #meter = new Meter();

  #state = "paused";
  #phase = "hashing"; // what it does when it is not offline
  /** @type {unknown} */
  #error = null;
  #cancelled = false;
  /** @type {Ending | null} */
  #ending = null; // of start()
  /** @type {Run | null} */
  #run = null; // {controller, over}: the work under way, until a pause, a failure or the end
  /** @type {ReturnType<typeof setTimeout> | null} */
  #emitting = null;

  /** @param {Source} source @param {Options} options */
  constructor(source, options = {}) {
    const { resume } = options;
    const before = { ...resume?.options, scope: resume?.scope, handles: resume?.handles };
    const all = { ...before, ...options, pool: options.pool ?? Pool.shared() };
    this.#source = source;
    this.#retry = new Retry(options, (online) => (online ? this.#online() : this.#offline()));
    this.#session = new Session(source, all, new Service(options), this.#retry);
    const parts = { session: this.#session, retry: this.#retry, meter: this.#meter };
    this.#transfer = new Transfer(source, parts, all, {
      sending: () => this.#enter("sending"),
      moved: () => {
        this.#online();
        this.#emit();
      },
    });
  }

  /**
   * Begins, or resumes after a pause or a failure. Returns {id, file, answer} once the file is complete.
   * @returns {Promise<Result>}
   */
  start() {
    if (this.#cancelled) return Promise.reject(this.#error);
    if (!this.#ending) {
      const ending = /** @type {Ending} */ ({});
      ending.promise = new Promise((resolve, reject) => Object.assign(ending, { resolve, reject }));
      ending.promise.catch(() => {}); // a page may watch only the state
      this.#ending = ending;
    }
    const { promise } = this.#ending;
    if (this.#state === "paused" || this.#state === "failed") this.#begin();
    return promise;
  }

  /** Stops sending. What has arrived stays. */
  pause() {
    if (!["hashing", "sending", "offline"].includes(this.#state)) return;
    this.#run?.controller.abort(new UploadError({ code: "paused" }));
    this.#to("paused");
  }

  /** Resumes, as start() does. */
  resume() {
    this.start().catch(() => {});
  }

  /**
   * Ends the upload, and its session with everything that has arrived. Returns false if the file
   * was already complete: then the upload is done.
   */
  async cancel() {
    if (this.#state === "done" || this.#cancelled) return this.#state !== "done";
    this.#cancelled = true;
    this.#run?.controller.abort(new UploadError({ code: "cancelled" }));
    await this.#run?.over;
    if (this.#state === "done") return false;
    if (await this.#session.end()) {
      this.#fail(new UploadError({ code: "cancelled" }));
      return true;
    }
    this.#cancelled = false;
    this.#state = "paused";
    this.resume(); // this gets the answer that was lost
    return false;
  }

  /** Returns {state, sent, total, rate, left, error, id}: bytes, bytes a second, seconds (or null). */
  snapshot() {
    const total = this.#source.length;
    const sent = Math.min(this.#meter.sent, total);
    const rate = this.#state === "sending" ? this.#meter.rate() : 0;
    const left = rate > 0 ? (total - sent) / rate : null;
    return { state: this.#state, sent, total, rate, left, error: this.#error, id: this.#session.id };
  }

  #begin() {
    const before = this.#run?.over;
    const controller = new AbortController();
    const { signal } = controller;
    /** @type {Run} */
    const run = { controller, over: null };
    this.#run = run;
    this.#error = null;
    this.#phase = "hashing";
    this.#to("hashing");
    const work = async () => {
      await before; // another run would send the same parts
      signal.throwIfAborted();
      const result = await this.#put(signal);
      this.#session.forget();
      this.#to("done");
      this.#ending?.resolve(result);
    };
    const ticking = setInterval(() => this.#emit(), 1000); // the rate falls while nothing moves
    run.over = work()
      .catch((error) => {
        if (!signal.aborted) this.#fail(asUploadError(error));
      })
      .finally(() => clearInterval(ticking));
  }

  /** @param {unknown} error */
  #fail(error) {
    this.#error = error;
    this.#session.letGo();
    this.#to("failed");
    this.#ending?.reject(error);
    this.#ending = null;
  }

  // put sends everything and completes the session. If another tab has completed it, or is about
  // to, this one gets the same answer.
  /** @param {AbortSignal} signal */
  async #put(signal) {
    let status = this.#take(await this.#session.open(signal));
    /** @type {any} */
    let failed = null;
    for (let tries = 0; ; tries++) {
      try {
        return await this.#attempt(status, signal);
      } catch (/** @type {any} */ error) {
        if (!failed || error.status !== 404) failed = error; // otherwise the earlier one says more
        if (signal.aborted || tries === RIVALS || ![400, 404, 409].includes(error.status)) throw failed;
      }
      await this.#retry.sleep(50 * tries, signal);
      status = await this.#status(signal).catch(() => {
        throw failed;
      });
    }
  }

  /** @param {AbortSignal} signal */
  async #status(signal) {
    return this.#take(await this.#session.status(signal));
  }

  /** @param {Status} status */
  #take(status) {
    this.#transfer.take(status);
    this.#tell();
    return status;
  }

  // attempt sends what has not arrived, and completes the session.
  /** @param {Status} status @param {AbortSignal} signal */
  async #attempt(status, signal) {
    if (status.state === "done") return this.#complete({}, signal); // get its answer again
    const arrived = new Map((status.arrived ?? []).map((part) => [part.number, part]));
    const order = this.#transfer.order();
    const { first } = this.#session;
    if (first && arrived.size && order[0] === 1 && text64(await this.#transfer.sum(1, signal)) !== first) {
      throw new UploadError({ code: "other" });
    }
    try {
      await this.#transfer.send(arrived, signal);
    } catch (/** @type {any} */ error) {
      if (error.status !== 404) throw error;
      if ((await this.#status(signal)).state === "done") return this.#complete({}, signal); // throws if it has ended
      // The parts have become one object, which is perhaps not yet a file.
      for (const number of order) await this.#transfer.sum(number, signal);
    }
    return this.#complete({ crc64nvme: this.#transfer.whole() }, signal);
  }

  /** @param {object} body @param {AbortSignal} signal */
  async #complete(body, signal) {
    this.#enter("completing");
    const result = await this.#session.complete(body, signal);
    this.#meter.begin([{ number: 1, size: this.#source.length }]);
    return result;
  }

  #offline() {
    if (this.#state === this.#phase) this.#to("offline");
  }

  #online() {
    if (this.#state === "offline") this.#to(this.#phase);
  }

  /** @param {string} phase */
  #enter(phase) {
    const shown = this.#state === this.#phase;
    this.#phase = phase;
    if (shown && this.#state !== phase) this.#to(phase);
  }

  /** @param {string} state */
  #to(state) {
    this.#state = state;
    this.#tell();
  }

  #emit() {
    this.#emitting ??= setTimeout(() => this.#tell(), EMIT_EVERY);
  }

  #tell() {
    clearTimeout(this.#emitting ?? undefined);
    this.#emitting = null;
    try {
      this.onchange?.(this.snapshot());
    } catch (/** @type {any} */ error) {
      (globalThis.reportError ?? console.error)(error); // a fault in the page must not end the upload
    }
  }
}

/** @param {unknown} error */
function asUploadError(error) {
  if (error instanceof UploadError) return error;
  if (error instanceof ChangedError)
    return new UploadError({ code: "changed", detail: error.message, path: error.path });
  return new UploadError({ code: "internal", detail: String(error) });
}
