// Makes bundles: several files and folders in one ZIP64 archive, stored and not deflated.
// shared/bundle in Go describes the format, and both make the same bytes from the same entries. The
// archive is made while it is sent: any part of it is a Blob of headers and slices of the files, so
// no content of the files is held in memory.
//
//   const bundle = new Bundle(choice.entries);            // throws a BundleError that names the entry
//   bundle.length;                                        // of the archive, before anything is read
//   const parts = bundle.cut(16 << 20, new Pool());
//   for (const number of parts.order()) {
//     const { hi, lo } = await parts.sum(number);         // the CRC64NVME of the part
//     const blob = await parts.blob(number);              // for XMLHttpRequest.send
//   }
//
// An entry is {path, file, modified, executable}. A folder's path ends in a slash, and it has no
// file. `modified` is in milliseconds; if it is missing, the file's own is used. Only empty folders need an entry.
//
// Exports: Bundle with entries, directory, length, cut(size, pool); Parts with count, order(),
// sum(number, {fresh, signal}), blob(number, {signal}), part(from, to, {signal}); checkPath(path),
// BundleError, MAX_ENTRIES.

import { Crc64, Crc32 } from "./crc.js";
import { ChangedError } from "./worker.js";

/** @import { Pool, Sum } from "./worker.js" */
/**
 * A file or a folder as it is given, and where it is in the bundle.
 * @typedef {{ path: string, file?: File | null, modified?: number, executable?: boolean, length?: number }} Entry
 * @typedef {{
 *   path: string, file: File | null, length: number, modified: number, executable: boolean, folder: boolean,
 *   header: number, offset: number,
 * }} Placed
 * @typedef {{ entry: number, from: number, to: number }} Share
 * @typedef {Share & { kind: string }} Piece
 */

/** The maximum number of files and folders in a bundle. */
export const MAX_ENTRIES = 10_000;

const MAX_DIRECTORY = 4 << 20; // bytes, without the end records
const MAX_PATH = 1024; // bytes, and for one element of it:
const MAX_ELEMENT = 255;
const WIDE = 0xffffffff; // values from here on do not fit in 32 bits; this one says so
const utf8 = new TextEncoder();

/** Says why something cannot be in a bundle. `path` is empty if it is about the whole bundle. */
export class BundleError extends Error {
  name = "BundleError";

  /** @param {string} path @param {string} reason */
  constructor(path, reason) {
    super(`${path ? JSON.stringify(path) : "the bundle"} ${reason}`);
    this.path = path;
    this.reason = reason;
  }
}

/** The layout of a bundle. It needs no checksums. */
export class Bundle {
  /** Where the directory begins, and the length of the whole, in bytes. */
  directory = 0;
  length = 0;
  /** @type {Placed[]} */
  entries = [];
  #records = 0; // bytes of the directory, without the end records
  #paths = new Paths();

  /** @param {Entry[]} entries */
  constructor(entries) {
    for (const entry of entries) this.#add(entry);
    if (!this.entries.length) throw new BundleError("", "has no entries");
    this.length = this.directory + this.#records + this.#end().length;
  }

  /** @param {Entry} entry */
  #add({ path, file = null, modified = file?.lastModified ?? 0, executable = false, length = file?.size ?? 0 }) {
    if (this.entries.length === MAX_ENTRIES) throw new BundleError("", `has more than ${MAX_ENTRIES} entries`);
    checkPath(path);
    if (!(length >= 0) || length > Number.MAX_SAFE_INTEGER - this.directory) {
      throw new BundleError(path, "has an impossible length");
    }
    const folder = path.endsWith("/");
    if (folder && length) throw new BundleError(path, "is a folder with bytes");
    this.#paths.add(path);
    const kept = { path, file, length, modified: keptTime(modified), executable: executable && !folder, folder };
    const entry = { ...kept, header: this.directory, offset: 0 };
    entry.offset = entry.header + localHeader(entry, 0).length;
    this.#records += record(entry, 0).length;
    if (this.#records > MAX_DIRECTORY) {
      throw new BundleError("", `has names that need more than ${MAX_DIRECTORY >> 20} MiB together`);
    }
    this.directory = entry.offset + length;
    this.entries.push(entry);
  }

  /**
   * Cuts the bundle into parts of `size` bytes; the last may be shorter.
   * @param {number} size @param {Pool} pool
   */
  cut(size, pool) {
    return new Parts(this, size, pool);
  }

  /**
   * Returns the directory and what follows it. `sums` holds the CRC-32 of each entry.
   * @param {number[]} sums
   */
  tail(sums) {
    return joined([...this.entries.map((entry, i) => record(entry, sums[i])), this.#end()]);
  }

  /**
   * Returns the local header of an entry, whose CRC-32 is `sum`.
   * @param {number} index @param {number} sum
   */
  header(index, sum) {
    return localHeader(this.entries[index], sum);
  }

  /**
   * Returns what lies between two offsets: {kind, entry, from, to}, within a header, a file or the tail.
   * @param {number} from @param {number} to
   */
  pieces(from, to) {
    /** @type {Piece[]} */
    const found = [];
    /** @type {(kind: string, entry: number, begin: number, end: number) => void} */
    const add = (kind, entry, begin, end) => {
      const first = Math.max(from, begin),
        last = Math.min(to, end);
      if (first < last) found.push({ kind, entry, from: first - begin, to: last - begin });
    };
    for (let i = this.#entryAt(from); i < this.entries.length && this.entries[i].header < to; i++) {
      const { header, offset, length } = this.entries[i];
      add("header", i, header, offset);
      add("content", i, offset, offset + length);
    }
    add("tail", -1, this.directory, this.length);
    return found;
  }

  // entryAt returns the first entry that ends after an offset.
  /** @param {number} at */
  #entryAt(at) {
    let low = 0,
      high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >> 1,
        { offset, length } = this.entries[middle];
      if (offset + length <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // end returns the records after the directory. If the directory begins beyond 32 bits, they
  // include the ZIP64 end record and its locator.
  #end() {
    const count = this.entries.length,
      at = this.directory,
      size = this.#records;
    const zip64 =
      at < WIDE
        ? new Uint8Array(0)
        : fields(
            [4, 0x06064b50],
            [8, 44],
            [2, MADE_BY],
            [2, ZIP64],
            [8, 0],
            [8, count],
            [8, count],
            [8, size],
            [8, at],
            [4, 0x07064b50],
            [4, 0],
            [8, at + size],
            [4, 1],
          );
    const end = fields([4, 0x06054b50], [4, 0], [2, count], [2, count], [4, size], [4, narrow(at)], [2, 0]);
    return joined([zip64, end]);
  }
}

/**
 * The parts of a bundle. Each is made independently, as often as needed. A header needs the checksum of its
 * file, and the directory those of all files. Each share that a part has of a file is read once for both
 * its checksums, which are kept. If a file changes later, reading it again throws a ChangedError.
 */
export class Parts {
  #bundle;
  #size;
  #pool;
  /** @type {Map<string, Promise<Sum>>} */
  #sums = new Map(); // of the shares: promises of {length, crc64, crc32}

  /** @param {Bundle} bundle @param {number} size @param {Pool} pool */
  constructor(bundle, size, pool) {
    this.#bundle = bundle;
    this.#size = size;
    this.#pool = pool;
  }

  get count() {
    return Math.ceil(this.#bundle.length / this.#size);
  }

  /**
   * Returns the numbers of all parts, from 1, in the order that needs the least reading ahead: a part with
   * the header of a file longer than a part comes after that file's bytes, and the directory comes last.
   * Any other order gives the same bytes.
   */
  order() {
    const first = [],
      headers = [],
      last = [];
    for (let number = 1; number <= this.count; number++) {
      if (this.#end(number) > this.#bundle.directory) last.push(number);
      else if (this.#hasLongHeader(number)) headers.push(number);
      else first.push(number);
    }
    return [...first, ...headers.reverse(), ...last];
  }

  /** @param {number} number */
  #hasLongHeader(number) {
    const { entries } = this.#bundle;
    return this.#pieces(number).some(({ kind, entry }) => kind === "header" && entries[entry].length > this.#size);
  }

  /**
   * Returns the CRC64NVME of a part, as {hi, lo}. With `fresh`, its files are read again.
   * @param {number} number @param {{ fresh?: boolean, signal?: AbortSignal }} options
   */
  async sum(number, { fresh = false, signal } = {}) {
    const pieces = this.#pieces(number);
    await this.#learn(pieces, signal);
    if (fresh) await this.#compare(pieces, signal);
    const whole = new Crc64();
    for (const piece of pieces) {
      if (piece.kind === "content") {
        const share = await this.#sumOf(piece);
        whole.append(share.crc64, share.length);
      } else {
        whole.update(await this.#bytes(piece));
      }
    }
    return whole.value;
  }

  /**
   * Returns a part. Only its headers are in memory.
   * @param {number} number @param {{ signal?: AbortSignal }} [options]
   */
  blob(number, options) {
    return this.part((number - 1) * this.#size, this.#end(number), options);
  }

  /**
   * Returns the bytes from one offset in the bundle to another, as a Blob.
   * @param {number} from @param {number} to @param {{ signal?: AbortSignal }} options
   */
  async part(from, to, { signal } = {}) {
    const pieces = this.#bundle.pieces(from, to);
    await this.#learn(
      pieces.filter(({ kind }) => kind !== "content"),
      signal,
    );
    const blobs = [];
    for (const piece of pieces) blobs.push(piece.kind === "content" ? this.#slice(piece) : await this.#bytes(piece));
    return new Blob(blobs);
  }

  /** @param {number} number */
  #end(number) {
    return Math.min(number * this.#size, this.#bundle.length);
  }

  /** @param {number} number */
  #pieces(number) {
    return this.#bundle.pieces((number - 1) * this.#size, this.#end(number));
  }

  /** @param {Share} share */
  #slice({ entry, from, to }) {
    return /** @type {File} */ (this.#bundle.entries[entry].file).slice(from, to);
  }

  /** @param {Share} share */
  #key({ entry, from }) {
    return `${entry}:${from}`;
  }

  // sumOf returns the sums of a share, which must have been read.
  /** @param {Share} share */
  #sumOf(share) {
    return /** @type {Promise<Sum>} */ (this.#sums.get(this.#key(share)));
  }

  // learn reads those shares of files whose sums the pieces need and are not yet known.
  /** @param {Piece[]} pieces @param {AbortSignal} [signal] */
  async #learn(pieces, signal) {
    /** @type {Share[]} */
    const shares = [];
    for (const piece of pieces) {
      if (piece.kind === "content") shares.push(piece);
      else if (piece.kind === "header") shares.push(...this.#shares(piece.entry));
      else shares.push(...this.#bundle.entries.flatMap((_, entry) => this.#shares(entry)));
    }
    const unknown = new Map();
    for (const share of shares) {
      const key = this.#key(share);
      if (!this.#sums.has(key)) unknown.set(key, share);
    }
    if (unknown.size) {
      const reading = this.#read([...unknown.values()], signal);
      [...unknown.keys()].forEach((key, i) => {
        const sum = reading.then((sums) => sums[i]);
        this.#sums.set(key, sum);
        sum.catch(() => {
          if (this.#sums.get(key) === sum) this.#sums.delete(key);
        });
      });
    }
    await Promise.all(shares.map((share) => this.#sumOf(share)));
  }

  // compare reads the shares of a part again, to see whether a file has changed.
  /** @param {Piece[]} pieces @param {AbortSignal} [signal] */
  async #compare(pieces, signal) {
    const shares = pieces.filter(({ kind }) => kind === "content");
    const now = await this.#read(shares, signal);
    for (const [i, share] of shares.entries()) {
      const { hi, lo } = (await this.#sumOf(share)).crc64;
      if (now[i].crc64.hi === hi && now[i].crc64.lo === lo) continue;
      throw new ChangedError(this.#bundle.entries[share.entry].path);
    }
  }

  /** @param {Share[]} shares @param {AbortSignal} [signal] */
  async #read(shares, signal) {
    try {
      return await this.#pool.sums(
        shares.map((share) => this.#slice(share)),
        { crc32: true, signal },
      );
    } catch (error) {
      if (!(error instanceof ChangedError)) throw error;
      throw new ChangedError(this.#bundle.entries[shares[error.index].entry].path);
    }
  }

  // shares returns the shares that the parts have of a file: the same pieces as the parts' own.
  /** @param {number} entry */
  #shares(entry) {
    const { offset, length } = this.#bundle.entries[entry];
    /** @type {Share[]} */
    const shares = [];
    for (let at = 0; at < length;) {
      const to = Math.min((Math.floor((offset + at) / this.#size) + 1) * this.#size - offset, length);
      shares.push({ entry, from: at, to });
      at = to;
    }
    return shares;
  }

  // bytes returns a piece that is a header or the tail. The sums that it needs must be known.
  /** @param {Piece} piece */
  async #bytes({ kind, entry, from, to }) {
    if (kind === "header") return this.#bundle.header(entry, await this.#crc32(entry)).subarray(from, to);
    const sums = [];
    for (let i = 0; i < this.#bundle.entries.length; i++) sums.push(await this.#crc32(i));
    return this.#bundle.tail(sums).subarray(from, to);
  }

  /** @param {number} entry */
  async #crc32(entry) {
    const sum = new Crc32();
    for (const share of this.#shares(entry)) {
      const { crc32, length } = await this.#sumOf(share);
      sum.append(crc32, length);
    }
    return sum.value;
  }
}

/**
 * Checks that a path is relative and that each of its elements is an ordinary name. Otherwise it throws a
 * BundleError. On Windows, such a path may still name a device, and two paths may name the same file.
 * @param {string} path
 */
export function checkPath(path) {
  const refuse = (/** @type {string} */ reason) => {
    throw new BundleError(path, reason);
  };
  if (path === "") refuse("has an entry without a path");
  if (utf8.encode(path).length > MAX_PATH) refuse(`is longer than ${MAX_PATH} bytes`);
  if (/\p{Surrogate}/u.test(path)) refuse("is not UTF-8"); // half of a character
  if (/\p{Control}/u.test(path)) refuse("has a control character");
  if (path.includes("\\")) refuse("has a backslash");
  if (path.startsWith("/")) refuse("is an absolute path");
  if (/^[A-Za-z]:/.test(path)) refuse("begins like a Windows drive");
  for (const element of bare(path).split("/")) {
    if (["", ".", ".."].includes(element)) refuse(`has the path element "${element}"`);
    if (utf8.encode(element).length > MAX_ELEMENT) refuse(`has a path element of more than ${MAX_ELEMENT} bytes`);
  }
}

// Paths holds the paths in a bundle so far. No path may occur twice, or be both a file and a folder.
class Paths {
  #files = new Set();
  #folders = new Set(); // that have an entry, without the slash
  #parents = new Set(); // of files and folders

  /** @param {string} path */
  add(path) {
    const own = bare(path),
      folder = own !== path,
      parents = parentsOf(own);
    if ((folder ? this.#folders : this.#files).has(own)) throw new BundleError(path, "occurs twice");
    if ((folder ? this.#files : this.#folders).has(own) || (!folder && this.#parents.has(own))) {
      throw new BundleError(path, "is both a file and a folder");
    }
    const above = parents.find((parent) => this.#files.has(parent));
    if (above !== undefined) throw new BundleError(path, `is inside a file, ${JSON.stringify(above)}`);
    (folder ? this.#folders : this.#files).add(own);
    for (const parent of parents) this.#parents.add(parent);
  }
}

/** @param {string} path */
function parentsOf(path) {
  const parents = [];
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) parents.push(path.slice(0, at));
  return parents;
}

/** @param {string} path */
function bare(path) {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

// The archive's numbers, as in APPNOTE.
const PLAIN = 20,
  ZIP64 = 45; // versions needed
const MADE_BY = (3 << 8) | 45; // Unix
const UTF8_FLAG = 1 << 11;
const FILE = 0o100644,
  EXECUTABLE = 0o100755,
  FOLDER = 0o040755,
  FOLDER_BIT = 0x10;

/** @param {Placed} entry @param {number} sum */
function localHeader(entry, sum) {
  const large = zip64Field([entry.length, entry.length]);
  return joined([fields([4, 0x04034b50]), common(entry, sum, large), names(entry), large]);
}

/** @param {Placed} entry @param {number} sum */
function record(entry, sum) {
  const large = zip64Field([entry.length, entry.length, entry.header]);
  const mode = entry.folder ? FOLDER : entry.executable ? EXECUTABLE : FILE;
  return joined([
    fields([4, 0x02014b50], [2, MADE_BY]),
    common(entry, sum, large),
    fields([2, 0], [2, 0], [2, 0], [2, entry.folder ? FOLDER_BIT : 0], [2, mode], [4, narrow(entry.header)]),
    names(entry),
    large,
  ]);
}

// common returns the fields that the local header and the record share.
/** @param {Placed} entry @param {number} sum @param {Uint8Array} large */
function common({ path, length, modified }, sum, large) {
  const [clock, date] = dosTime(modified),
    size = narrow(length);
  return fields(
    [2, large.length ? ZIP64 : PLAIN],
    [2, UTF8_FLAG],
    [2, 0],
    [2, clock],
    [2, date],
    [4, sum],
    [4, size],
    [4, size],
    [2, utf8.encode(path).length],
    [2, 9 + large.length],
  );
}

// names returns the path, and the field with the time.
/** @param {Placed} entry */
function names({ path, modified }) {
  return joined([utf8.encode(path), fields([2, 0x5455], [2, 5], [1, 1], [4, modified])]);
}

// zip64Field returns a field with those values that do not fit in 32 bits. It may be empty.
/** @param {number[]} values */
function zip64Field(values) {
  const large = values.filter((value) => value >= WIDE).map((value) => [8, value]);
  return large.length ? fields([2, 1], [2, 8 * large.length], ...large) : new Uint8Array(0);
}

/** @param {number} value */
function narrow(value) {
  return Math.min(value, WIDE);
}

// keptTime returns the seconds that the archive keeps for a time in milliseconds.
/** @param {number} milliseconds */
function keptTime(milliseconds) {
  return Math.min(Math.max(Math.floor(Number(milliseconds) / 1000) || 0, 0), 2 ** 31 - 1);
}

// dosTime returns time and date as MS-DOS writes them, in UTC.
/** @param {number} seconds */
function dosTime(seconds) {
  const t = new Date(Math.max(seconds, Date.UTC(1980, 0) / 1000) * 1000);
  return [
    (t.getUTCHours() << 11) | (t.getUTCMinutes() << 5) | (t.getUTCSeconds() >> 1),
    ((t.getUTCFullYear() - 1980) << 9) | ((t.getUTCMonth() + 1) << 5) | t.getUTCDate(),
  ];
}

// fields returns numbers as bytes, the lowest byte first. Each number is [bytes, value].
/** @param {number[][]} all */
function fields(...all) {
  const out = new Uint8Array(all.reduce((n, [width]) => n + width, 0));
  let at = 0;
  for (let [width, value] of all) {
    for (; width > 0; width--, value = Math.floor(value / 256)) out[at++] = value % 256;
  }
  return out;
}

/** @param {Uint8Array[]} pieces */
function joined(pieces) {
  const out = new Uint8Array(pieces.reduce((n, piece) => n + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
