// Reads pieces of files and computes their checksums, away from the page. This file is both the
// worker's script, and what a page uses to talk to a few such workers.
//
//   const pool = new Pool();
//   const [sum] = await pool.sums([file.slice(0, 16 << 20)]);   // {length, crc64: {hi, lo}, crc32}
//
// Exports: Pool, with sums(blobs, {crc32, signal}), close() and Pool.shared(); sums(blobs, {crc32}), which does the
// same here and now; ChangedError.
//
// Blobs are read in blocks of 1 MiB, of which a worker holds at most two. Where there are no
// workers (in node, or if the page may not start any), the pool computes the sums itself.

import { Crc64, Crc32 } from "./crc.js";

/** @import { Sum64 } from "./crc.js" */
/**
 * @typedef {{ length: number, crc64: Sum64, crc32: number }} Sum
 * @typedef {{ crc32?: boolean }} Wanted
 * @typedef {(blobs: Blob[], wanted: Wanted) => Promise<Sum[]>} Summing
 * @typedef {{
 *   from: number, blobs: Blob[], crc32: boolean, signal?: AbortSignal,
 *   resolve: (sums: Sum[]) => void, reject: (error: unknown) => void,
 * }} Task
 */

const BLOCK = 1 << 20;

// A task for a worker has at most TASK_BYTES bytes, unless it is a single blob, and at most
// TASK_BLOBS blobs.
const TASK_BYTES = 8 << 20;
const TASK_BLOBS = 64;

/** A file can no longer be read, or its bytes have changed. `path` names it, if it is in a bundle. */
export class ChangedError extends Error {
  name = "ChangedError";

  /** `index` is that of the blob, if several were read. */
  constructor(path = "", index = 0) {
    super(`${path ? JSON.stringify(path) : "the file"} was changed or removed, or cannot be read`);
    this.path = path;
    this.index = index;
  }
}

/**
 * Returns the sums of blobs, one after the other. Without `crc32`, that field is 0.
 * @param {Blob[]} blobs @param {Wanted} wanted
 * @returns {Promise<Sum[]>}
 */
export async function sums(blobs, { crc32 = false } = {}) {
  const all = [];
  for (const blob of blobs) {
    const wide = new Crc64(),
      narrow = new Crc32();
    for await (const bytes of blocks(blob, all.length)) {
      wide.update(bytes);
      if (crc32) narrow.update(bytes);
    }
    all.push({ length: blob.size, crc64: wide.value, crc32: narrow.value });
  }
  return all;
}

// blocks yields a blob's bytes. Each block is overwritten by the next.
/** @param {Blob} blob @param {number} index @returns {AsyncGenerator<Uint8Array<ArrayBuffer>, void>} */
async function* blocks(blob, index) {
  const reader = blob.size > BLOCK && readerOf(blob);
  if (!reader) return yield* copies(blob, index);
  let buffer = new ArrayBuffer(BLOCK),
    left = blob.size;
  try {
    while (left > 0) {
      const { value, done } = await reader.read(new Uint8Array(buffer));
      if (done) break;
      left -= value.length;
      yield value;
      buffer = value.buffer;
    }
  } catch {
    /* then bytes are missing */
  }
  if (left) throw new ChangedError("", index);
}

// readerOf returns a reader that fills the same memory again and again, if the browser has one.
// Otherwise browsers keep hundreds of unused blocks until they collect them.
/** @param {Blob} blob */
function readerOf(blob) {
  try {
    return blob.stream().getReader({ mode: "byob" });
  } catch {
    return null;
  }
}

// copies yields a blob's bytes, each block in memory of its own. It reads the next block while the
// previous one is used.
/** @param {Blob} blob @param {number} index */
async function* copies(blob, index) {
  const read = async (/** @type {number} */ from) => {
    const piece = blob.slice(from, from + BLOCK);
    const buffer = await piece.arrayBuffer().catch(() => null);
    if (buffer?.byteLength !== piece.size) throw new ChangedError("", index);
    return new Uint8Array(buffer);
  };
  let next = blob.size > 0 ? read(0) : null;
  for (let at = BLOCK; next; at += BLOCK) {
    const bytes = await next;
    next = at < blob.size ? read(at) : null;
    next?.catch(() => {}); // a caller that stops early does not wait for it
    yield bytes;
  }
}

/** A few workers. They start when they are needed. */
export class Pool {
  /** @type {Pool | null} */
  static #shared = null;

  /** The pool of the whole page. */
  static shared() {
    return (Pool.#shared ??= new Pool());
  }

  #free; // how many workers may still be started
  /** @type {Summing[]} */
  #idle = []; // what takes a task: a function that returns a promise
  /** @type {Task[]} */
  #waiting = []; // tasks
  /** @type {Worker[]} */
  #workers = [];
  #options;

  /** @param {{ size?: number, Worker?: typeof globalThis.Worker | null, url?: URL }} options */
  constructor({ size = usualSize(), Worker = globalThis.Worker, url = new URL("worker.js", import.meta.url) } = {}) {
    this.#options = { Worker, url };
    this.#free = Worker ? size : 1;
  }

  /**
   * Returns {length, crc64, crc32} of each blob. A blob that cannot be read throws a ChangedError with its index.
   * @param {Blob[]} blobs @param {Wanted & { signal?: AbortSignal }} options
   */
  async sums(blobs, { crc32 = false, signal } = {}) {
    const tasks = tasksOf(blobs);
    const answers = await Promise.all(
      tasks.map(
        ({ from, to }) =>
          /** @type {Promise<Sum[]>} */ (
            new Promise((resolve, reject) => {
              this.#waiting.push({ from, blobs: blobs.slice(from, to), crc32, signal, resolve, reject });
              this.#next();
            })
          ),
      ),
    );
    return answers.flat();
  }

  /** Ends the workers. */
  close() {
    for (const worker of this.#workers) worker.terminate();
    this.#idle = [];
    this.#free = 0;
  }

  async #next() {
    if (!this.#idle.length && !this.#free) return;
    const task = this.#waiting.shift();
    if (!task) return;
    const run = this.#idle.pop() ?? this.#start();
    const { from, blobs, crc32, signal, resolve, reject } = task;
    try {
      if (signal?.aborted) throw signal.reason;
      resolve(await run(blobs, { crc32 }));
    } catch (error) {
      if (error instanceof ChangedError) error.index += from;
      reject(error);
    }
    this.#idle.push(run);
    this.#next();
  }

  // start returns a function like sums: a worker that computes, or sums itself.
  /** @returns {Summing} */
  #start() {
    this.#free--;
    const { Worker, url } = this.#options;
    /** @type {Worker | null} */
    let worker = null;
    try {
      worker = Worker && new Worker(url, { type: "module" });
    } catch {
      /* the page may not */
    }
    if (!worker) return sums;
    this.#workers.push(worker);
    return async (blobs, options) => {
      const said = worker && (await ask(worker, { blobs, options }));
      if (said?.sums) return said.sums;
      if (said?.changed !== undefined) throw new ChangedError("", said.changed);
      worker = null; // it could not start, or broke down
      return sums(blobs, options);
    };
  }
}

function usualSize() {
  return Math.min(Math.max((globalThis.navigator?.hardwareConcurrency ?? 2) - 1, 1), 3);
}

// ask returns the worker's answer to its only open question, or null if it has failed.
/** @param {Worker} worker @param {object} question @returns {Promise<{ sums?: Sum[], changed?: number } | null>} */
function ask(worker, question) {
  return new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onmessageerror = worker.onerror = (/** @type {Event} */ event) => {
      event.preventDefault?.();
      resolve(null);
    };
    worker.postMessage(question);
  });
}

/** @param {Blob[]} blobs */
function tasksOf(blobs) {
  const tasks = [];
  for (let from = 0, to = 0; to < blobs.length; from = to) {
    let bytes = 0;
    do bytes += blobs[to++].size;
    while (to < blobs.length && to - from < TASK_BLOBS && bytes + blobs[to].size <= TASK_BYTES);
    tasks.push({ from, to });
  }
  return tasks;
}

// In a worker, answer its page.
if ("WorkerGlobalScope" in globalThis) {
  globalThis.onmessage = async ({ data: { blobs, options } }) => {
    try {
      postMessage({ sums: await sums(blobs, options) });
    } catch (error) {
      postMessage(error instanceof ChangedError ? { changed: error.index } : { failed: String(error) });
    }
  };
}
