// What the user has chosen to send: files and folders, in the order in which they were added.
//
//   const choice = new Choice();
//   choice.add(found);                       // from drop.js: {path, file, handle}; an empty folder's file is null
//   choice.items;                            // {name, folder, entries, size, count, handle}
//   choice.source({ fileSource, bundleSource, Bundle }, name);   // for an Upload
//   choice.fits(record, Bundle);             // whether this is what an unfinished upload sends
//
// Exports: Choice with items, size, count, entries, single, handles, add(found), remove(item),
// replace(path, file), without(path), name(words), source(engine, name), fits(record, Bundle), shares(share).

import { byPath } from "./values.js";

/** @import { Bundle } from "./bundle.js" */
/** @import { Found } from "./drop.js" */
/** @import { Unfinished } from "./store.js" */
/** @import { Source } from "./upload.js" */
/** @import { Words } from "./words.js" */
/**
 * @typedef {{ path: string, file: File | null }} Entry
 * @typedef {{
 *   name: string, folder: boolean, entries: Entry[], handle?: FileSystemHandle, size: number, count: number,
 * }} Item
 * @typedef {{
 *   fileSource: (file: File, name: string) => Source, bundleSource: (name: string, bundle: Bundle) => Source,
 *   Bundle: typeof Bundle,
 * }} Engine
 */

/** Files and folders. A single file is sent as it is, anything else as a bundle. */
export class Choice {
  /** @type {Item[]} */
  items = [];

  get entries() {
    return this.items.flatMap(({ entries }) => entries).sort(byPath);
  }

  get size() {
    return this.items.reduce((sum, { size }) => sum + size, 0);
  }

  get count() {
    return this.items.reduce((sum, { count }) => sum + count, 0);
  }

  /** The one file that is sent as it is, or null. */
  get single() {
    const [item] = this.items;
    return this.items.length === 1 && !item.folder ? item.entries[0].file : null;
  }

  /** Handles that lead to the files again after the page was closed, or undefined if any item has none. */
  get handles() {
    const all = this.items.map(({ handle }) => handle);
    return all.length && all.every((handle) => handle !== undefined) ? all : undefined;
  }

  /**
   * Adds what was found. A file that is already here is skipped, and a different file of the same name is renamed.
   * @param {Found[]} found
   */
  add(found) {
    const known = new Map(this.entries.map((entry) => [entry.path, entry.file]));
    for (const { path, file, handle } of found) {
      const top = path.split("/")[0];
      const folder = path.includes("/");
      if (known.has(path) && isSame(known.get(path), file)) continue;
      let unique = path;
      for (let n = 2; known.has(unique); n++) unique = numbered(path, n);
      known.set(unique, file);
      const entry = { path: unique, file };
      const item = folder && this.items.find((one) => one.folder && one.name === top);
      if (!item) {
        const kept = unique === path ? handle : undefined;
        this.items.push({ name: folder ? top : unique, folder, entries: [entry], handle: kept, size: 0, count: 0 });
        continue;
      }
      if (item.handle !== handle) item.handle = undefined;
      item.entries.push(entry);
    }
    this.#count();
  }

  /** @param {Item} item */
  remove(item) {
    this.items = this.items.filter((one) => one !== item);
  }

  /**
   * Puts another file in place of one that has changed. An empty path means the only file.
   * @param {string} path @param {File} file
   */
  replace(path, file) {
    for (const item of this.items) {
      for (const entry of item.entries) {
        if (entry.path !== path && path) continue;
        entry.file = file;
        item.handle = undefined;
      }
    }
    this.#count();
  }

  /**
   * Leaves out a file.
   * @param {string} path
   */
  without(path) {
    for (const item of this.items) {
      item.entries = item.entries.filter((entry) => entry.path !== path);
      if (item.folder) item.handle = undefined; // the handle still leads to the file
    }
    this.items = this.items.filter(({ entries }) => entries.length);
    this.#count();
  }

  #count() {
    for (const item of this.items) {
      item.size = item.entries.reduce((sum, { file }) => sum + (file?.size ?? 0), 0);
      item.count = item.entries.filter(({ file }) => file).length;
    }
  }

  /**
   * Returns the name under which everything is sent.
   * @param {Words} words
   */
  name(words) {
    if (this.single) return this.single.name;
    const [first] = this.items,
      stem = first.folder ? first.name : first.name.replace(/(.)\.[^.]{1,8}$/, "$1");
    const short = [...stem].slice(0, 60).join("");
    return `${this.items.length === 1 ? short : words.t("bundle", short, this.items.length - 1)}.zip`;
  }

  /**
   * Returns what an Upload sends. A name that cannot be in a bundle throws a BundleError.
   * @param {Engine} engine @param {string} name
   */
  source({ fileSource, bundleSource, Bundle }, name) {
    return this.single ? fileSource(this.single, name) : bundleSource(name, new Bundle(this.entries));
  }

  /**
   * Reports whether this is what an unfinished upload sends, judging by names and sizes. The record of an
   * upload that began elsewhere does not say whether it is a bundle, and of what.
   * @param {Unfinished} record @param {Engine["Bundle"]} Bundle
   */
  fits(record, Bundle) {
    const { single, entries } = this,
      known = record.entries;
    if (single)
      return !record.bundle && single.name.normalize() === record.name.normalize() && single.size === record.size;
    if (record.bundle === false) return false;
    if (known && (entries.length !== known.length || entries.some(({ path }, i) => path !== known[i]))) return false;
    try {
      return new Bundle(entries).length === record.size;
    } catch {
      return false; // they cannot be in a bundle
    }
  }

  /**
   * Returns how much of each item has been sent, from 0 to 1, for a share of the total. Items go in the
   * order of their names.
   * @param {number} share
   */
  shares(share) {
    const order = [...this.items].sort((a, b) => (a.name < b.name ? -1 : 1)),
      shares = new Map();
    let left = share * this.size;
    for (const item of order) {
      shares.set(
        item,
        share === 1 || (left >= item.size && (left > 0 || item.size > 0)) ? 1 : Math.max(0, left / (item.size || 1)),
      );
      left -= item.size;
    }
    return shares;
  }
}

/** @param {File | null | undefined} a @param {File | null} b */
function isSame(a, b) {
  return a === b || Boolean(a && b && a.size === b.size && a.lastModified === b.lastModified);
}

// numbered returns "a (2).txt" of a.txt.
/** @param {string} path @param {number} n */
function numbered(path, n) {
  const [, stem, end] = /** @type {RegExpMatchArray} */ (path.match(/^(.*?[^/])((?:\.[^./]{1,8})?\/?)$/s));
  return `${stem} (${n})${end}`;
}
