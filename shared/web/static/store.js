// Remembers unfinished uploads in the browser, so that they can be resumed after the tab was
// closed. It keeps no secret: no token, no password, no bytes of a file.
//
//   const store = new Store({ names });     // of the options that may be kept, from the page
//   const upload = new Upload(source, { store, scope: "user:ann", handles: [handle] });  // see upload.js
//   for (const record of await store.list("user:ann")) ...    // newest first, none that another tab is sending
//   new Upload(source, { store, resume: record });
//   await store.delete(record.id);
//
// A record is {id, scope, name, size, type, bundle, first, protected, options, handles, entries,
// created}: `id` is the session's, `first` the checksum of the first part once it is known, `protected`
// says that the upload has a password, `options` are those of POST uploads, `handles` are
// FileSystemFileHandles where the browser has them (a page has to ask for permission again), and
// `entries` the paths of a bundle in their order.
//
// A scope says who may see a record: for a user 'user:NAME', for a guest what guestScope returns.
//
// Exports: Store with list(scope), put(record), delete(id), hold(id); guestScope(token). If the
// browser stores nothing, as in some private windows, lists are empty and nothing fails.

import { hex, pick } from "./values.js";

/**
 * @typedef {{
 *   id: string, scope?: string, name: string, size: number, type?: string, bundle?: boolean, first?: string | null,
 *   protected?: boolean, options: { [name: string]: any }, handles?: FileSystemHandle[], entries?: string[],
 *   created?: number,
 * }} Unfinished
 */

const DATABASE = "ferry";
const UPLOADS = "uploads";
const LIFE = 7 * 24 * 3600 * 1000; // as long as the service keeps a session, in milliseconds
const LOCK = "ferry-upload-";

// What may be kept besides options. A field that is not listed might be a secret.
const FIELDS = ["id", "scope", "name", "size", "type", "bundle", "first", "protected", "handles", "entries", "created"];

/** The unfinished uploads of this browser. */
export class Store {
  #names;
  #indexedDB;
  #locks;
  #now;
  /** @type {Promise<IDBDatabase> | null} */
  #opened = null;

  /** @param {{ names?: string[], indexedDB?: IDBFactory, locks?: LockManager, now?: () => number }} options */
  constructor({ names = [], indexedDB = globalThis.indexedDB, locks = globalThis.navigator?.locks, now = Date.now }) {
    this.#names = names;
    this.#indexedDB = indexedDB;
    this.#locks = locks;
    this.#now = now;
  }

  /**
   * Returns the records of a scope that have not expired and are not being sent, the newest first.
   * @param {string} scope
   * @returns {Promise<Unfinished[]>}
   */
  async list(scope) {
    const all = (await this.#do("readonly", (uploads) => uploads.getAll())) ?? [];
    const over = all.filter(({ created }) => !(created > this.#now() - LIFE));
    for (const { id } of over) await this.delete(id);
    const held = new Set((await this.#locks?.query().catch(() => null))?.held?.map(({ name }) => name));
    const open = all.filter(
      (record) => record.scope === scope && !over.includes(record) && !held.has(LOCK + record.id),
    );
    return open.sort((a, b) => b.created - a.created);
  }

  /**
   * Keeps a record, in place of an earlier one with the same id. It leaves out what must not be kept.
   * @param {Unfinished} record
   */
  async put(record) {
    const kept = { created: this.#now(), ...pick(record, FIELDS), options: pick(record.options ?? {}, this.#names) };
    // A record is still of use without the handles: not every browser can store them.
    const stored = await this.#do("readwrite", (uploads) => uploads.put(kept));
    if (stored === undefined && kept.handles) {
      delete kept.handles;
      await this.#do("readwrite", (uploads) => uploads.put(kept));
    }
  }

  /**
   * Forgets a record.
   * @param {string} id
   */
  async delete(id) {
    await this.#do("readwrite", (uploads) => uploads.delete(id));
  }

  /**
   * Keeps a record out of the lists of all tabs until the returned function is called or the tab is closed.
   * @param {string} id
   */
  hold(id) {
    let release = () => {};
    /** @type {Promise<void>} */
    const held = new Promise((resolve) => {
      release = resolve;
    });
    this.#locks?.request(LOCK + id, { mode: "shared" }, () => held).catch(() => {});
    return release;
  }

  // do returns what a request to the database gives, or undefined if it fails.
  /** @template T @param {IDBTransactionMode} mode @param {(uploads: IDBObjectStore) => IDBRequest<T>} ask */
  async #do(mode, ask) {
    try {
      const database = await (this.#opened ??= open(this.#indexedDB));
      return await answer(ask(database.transaction(UPLOADS, mode).objectStore(UPLOADS)));
    } catch {
      return undefined;
    }
  }
}

/**
 * Returns the scope of a guest: a hash, so that it reveals nothing about the token. Returns ""
 * without crypto.subtle.
 * @param {string} token
 */
export async function guestScope(token) {
  if (!globalThis.crypto?.subtle) return ""; // the page came by plain http
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`ferry guest ${token}`));
  return "guest:" + hex(new Uint8Array(hash, 0, 16));
}

/** @param {IDBFactory} indexedDB */
function open(indexedDB) {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(UPLOADS, { keyPath: "id" });
  return answer(opening);
}

/** @template T @param {IDBRequest<T> & { onblocked?: unknown }} request @returns {Promise<T>} */
function answer(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onblocked = request.onerror = () => reject(request.error);
  });
}
