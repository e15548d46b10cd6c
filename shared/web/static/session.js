// The upload session that the service keeps for a file, and what the browser remembers of it (see store.js).
//
// Exports: Session with id, parts, partSize, first, isGuest, open(signal), status(signal), sign(parts, signal),
// complete(body, signal), end(), learn(sum), near(url), size(number), forget(), letGo().

import { UploadError } from "./service.js";
import { hex, pick } from "./values.js";

/** @import { Part, Signed } from "./queue.js" */
/** @import { Retry } from "./retry.js" */
/** @import { Ask, Service } from "./service.js" */
/** @import { Unfinished } from "./store.js" */
/** @import { Options, Result, Source } from "./upload.js" */
/**
 * @typedef {{ number: number, size: number, crc64nvme: string }} Arrived
 * @typedef {{
 *   id: string, length: number, partSize: number, parts: number, state?: string, arrived?: Arrived[] | null,
 * }} Status
 */

/** A session that is opened when it is needed, or resumed by the record of a store. */
export class Session {
  /** @type {string | null} */
  id = null;
  parts = 0;
  partSize = 0;

  #source;
  #options;
  #service;
  #retry;

  #key = ""; // Idempotency-Key of a session that is being made
  /** @type {Unfinished | null} */
  #record = null; // what the store keeps about it
  /** @type {{ id: string, release?: () => void } | null} */
  #held = null; // {id, release}: the session that no other tab may offer

  /** @param {Source} source @param {Options} options @param {Service} service @param {Retry} retry */
  constructor(source, options, service, retry) {
    this.#source = source;
    this.#options = options;
    this.#service = service;
    this.#retry = retry;
    if (!options.resume) return;
    this.#record = options.resume;
    this.id = options.resume.id;
  }

  get isGuest() {
    return this.#service.isGuest;
  }

  /**
   * Returns the state of the session, and what has arrived in it.
   * @param {AbortSignal} signal
   * @returns {Promise<Status>}
   */
  async open(signal) {
    const { resume, password } = this.#options;
    if (resume && (resume.size !== this.#source.length || resume.name !== this.#source.name)) {
      throw new UploadError({ code: "other" });
    }
    await this.#retry.run(signal, () => this.#service.join(signal));
    if (this.id) {
      try {
        return await this.status(signal);
      } catch (/** @type {any} */ error) {
        if (error.status !== 404) throw error;
        if (resume?.protected && !password) throw new UploadError({ status: 404, code: "gone" });
      }
      this.forget();
    }
    return this.#create(signal);
  }

  /**
   * Returns the state of the session again.
   * @param {AbortSignal} signal
   * @returns {Promise<Status>}
   */
  async status(signal) {
    return this.#use(await this.#retry.run(signal, () => this.#call("GET", "", { signal })));
  }

  /** @param {string} method @param {string} path @param {Ask} options */
  #call(method, path, options) {
    return this.#service.call(method, `uploads/${encodeURIComponent(this.id ?? "")}${path}`, options);
  }

  // create begins a session. If the answer is lost, the same key gets the session again.
  /** @param {AbortSignal} signal @returns {Promise<Status>} */
  async #create(signal) {
    const { name, type, length, bundle, entries } = this.#source;
    const { scope, handles, store } = this.#options;
    const options = pick(this.#options, [...(this.#options.names ?? []), "password", "partSize"]);
    const files = entries?.filter((path) => !path.endsWith("/")).length;
    const body = { name, type, length, bundle, files, ...options };
    this.#key ||= hex(crypto.getRandomValues(new Uint8Array(16)));
    const headers = { "Idempotency-Key": this.#key };
    const status = await this.#retry.run(signal, () =>
      this.#service.call("POST", "uploads", { body, headers, signal }),
    );
    this.#key = "";
    this.#use(status);
    const { password, ...kept } = options;
    this.#record = {
      id: status.id,
      scope,
      name,
      size: length,
      type,
      bundle,
      entries,
      handles,
      created: Date.now(),
      first: null,
      protected: Boolean(password),
      options: kept,
    };
    unhurried(store?.put(this.#record));
    return status;
  }

  // use takes over a session, whose parts must add up to the file.
  /** @param {Status} status */
  #use(status) {
    const { id, length, partSize, parts } = status ?? {};
    const same = length === this.#source.length;
    if (!id || !same || !(partSize > 0) || parts !== Math.max(1, Math.ceil(length / partSize))) {
      throw new UploadError({ code: same ? "answer" : "other" });
    }
    if (this.#held?.id !== id) {
      this.letGo();
      this.#held = { id, release: this.#options.store?.hold(id) };
    }
    this.id = id;
    this.parts = parts;
    this.partSize = partSize;
    return status;
  }

  /**
   * Returns the size of a part.
   * @param {number} number
   */
  size(number) {
    return Math.min(this.partSize, this.#source.length - (number - 1) * this.partSize);
  }

  /** The checksum of the first part, if it is known. */
  get first() {
    return this.#record?.first;
  }

  /**
   * Remembers the checksum of the first part.
   * @param {string} sum
   */
  learn(sum) {
    if (!this.#record || this.#record.first) return;
    this.#record = { ...this.#record, first: sum };
    unhurried(this.#options.store?.put(this.#record));
  }

  /**
   * Returns where parts go, by their numbers.
   * @param {Part[]} parts @param {AbortSignal} signal
   * @returns {Promise<Map<number, Signed>>}
   */
  async sign(parts, signal) {
    const numbers = parts.map(({ number }) => number);
    const body = { numbers, crc64nvme: Object.fromEntries(parts.map(({ number, sum }) => [number, sum])) };
    const answer = await this.#call("POST", "/parts", { body, signal });
    /** @type {Map<number, Signed>} */
    const found = new Map(answer?.parts?.map((/** @type {Signed & { number: number }} */ part) => [part.number, part]));
    if (numbers.some((number) => !found.has(number))) throw new UploadError({ code: "answer" });
    return found;
  }

  /**
   * Returns the address of a part under the page's own name, if the service itself takes the part.
   * @param {string} url
   */
  near(url) {
    return this.#service.near(url, this.id ?? "");
  }

  /**
   * Makes the file, and returns {id, file, answer}. A repeated request gets the same answer.
   * @param {object} body @param {AbortSignal} signal
   * @returns {Promise<Result>}
   */
  async complete(body, signal) {
    let said = "";
    const answer = await this.#retry.run(signal, async () => {
      try {
        return await this.#call("POST", "/complete", { body, signal });
      } catch (/** @type {any} */ error) {
        if (error.status === 503 && error.message !== said) {
          said = error.message; // the service says how far it is
          error.moved = true;
        }
        throw error;
      }
    });
    if (!Array.isArray(answer?.files)) throw new UploadError({ code: "answer" });
    const id = parseInt(this.id ?? "", 10); // of the file
    const file = this.isGuest
      ? answer.files[0]
      : answer.files.find((/** @type {{ id: number }} */ one) => one.id === id);
    return { id, answer, file: file ?? (await this.#service.call("GET", `files/${id}`, { signal }).catch(() => null)) };
  }

  /** Removes the session. Returns false if it has become a file. */
  async end() {
    const { signal } = new AbortController();
    const tries = 3;
    try {
      // Its creation may have been cut off: then its id is not known.
      if (!this.id && this.#key) await this.#create(signal);
      if (!this.id) return true;
      await this.#retry.run(signal, () => this.#call("DELETE", "", { signal, keepalive: true }), tries);
    } catch (/** @type {any} */ error) {
      if (error.status === 409) return false;
      if (error.status !== 404) return true; // it expires within a week, and the store still offers it
    }
    this.forget();
    return true;
  }

  /** Forgets a session that has ended. */
  forget() {
    const { id } = this;
    this.id = this.#record = null;
    this.letGo();
    if (id) unhurried(this.#options.store?.delete(id));
  }

  /** Lets other tabs offer the session. */
  letGo() {
    this.#held?.release?.();
    this.#held = null;
  }
}

// unhurried lets a store work in the background: no upload waits for it, or fails because of it.
/** @param {unknown} work */
function unhurried(work) {
  Promise.resolve(work).catch(() => {});
}
