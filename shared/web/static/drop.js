// Finds the files in what was dropped, pasted or chosen, with all folders. Where browsers support
// it, it also gets handles that lead to the files again after the page was closed.
//
// Exports: foundIn(files), dropped(dataTransfer), reopened(handles), choose(folder), canChoose(). All but the
// last return {path, file, handle}: an empty folder has a path that ends in a slash, and no file.

/** @typedef {{ path: string, file: File | null, handle?: FileSystemHandle }} Found */

/**
 * What only some browsers have.
 * @type {{
 *   showDirectoryPicker(): Promise<FileSystemHandle>,
 *   showOpenFilePicker(options: { multiple: boolean }): Promise<FileSystemHandle[]>,
 * }}
 */
const pickers = /** @type {any} */ (globalThis);

/**
 * Returns the files of an <input type=file> or a clipboard.
 * @param {Iterable<File>} files
 * @returns {Found[]}
 */
export function foundIn(files) {
  return Array.from(files, (file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/**
 * Returns what was dropped. It must be called while the drop is handled.
 * @param {DataTransfer} transfer
 */
export async function dropped(transfer) {
  const items = Array.from(transfer.items).filter(({ kind }) => kind === "file");
  const begun = items.map((item) => ({
    // all at once: after an await the items are gone
    handle: /** @type {any} */ (item).getAsFileSystemHandle?.().catch(() => null),
    entry: item.webkitGetAsEntry?.(),
    file: item.getAsFile(),
  }));
  /** @type {Found[]} */
  const all = [];
  for (const { handle, entry, file } of begun) {
    const found = await handle;
    if (found) all.push(...(await reopened([found])));
    else if (entry) all.push(...(await walkEntry(entry, "")));
    else if (file) all.push({ path: file.name, file });
  }
  return all;
}

/**
 * Returns the files that handles lead to.
 * @param {FileSystemHandle[]} handles
 */
export async function reopened(handles) {
  /** @type {Found[]} */
  const all = [];
  for (const handle of handles) {
    for (const found of await walkHandle(handle, "")) all.push({ ...found, handle });
  }
  return all;
}

/** @param {any} handle @param {string} before @returns {Promise<Found[]>} */
async function walkHandle(handle, before) {
  const path = before + handle.name;
  if (handle.kind === "file") return [{ path, file: await handle.getFile() }];
  /** @type {Found[]} */
  const all = [];
  for await (const child of handle.values()) all.push(...(await walkHandle(child, `${path}/`)));
  return all.length ? all : [{ path: `${path}/`, file: null }];
}

/** @param {any} entry @param {string} before @returns {Promise<Found[]>} */
async function walkEntry(entry, before) {
  const path = before + entry.name;
  if (entry.isFile) return [{ path, file: await new Promise((resolve, reject) => entry.file(resolve, reject)) }];
  const reader = entry.createReader();
  /** @type {Found[]} */
  const all = [];
  for (;;) {
    // it returns a hundred at a time
    /** @type {any[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) break;
    for (const child of some) all.push(...(await walkEntry(child, `${path}/`)));
  }
  return all.length ? all : [{ path: `${path}/`, file: null }];
}

/** Reports whether choose works and is better than the browser's own dialog, which on a phone offers the camera. */
export function canChoose() {
  if (!("showOpenFilePicker" in globalThis && "showDirectoryPicker" in globalThis)) return false;
  return !(/** @type {any} */ (navigator).userAgentData?.mobile);
}

/**
 * Lets the user choose files or a folder, and returns them, or nothing if the user cancels.
 * @param {boolean} folder
 */
export async function choose(folder) {
  try {
    return await reopened(
      folder ? [await pickers.showDirectoryPicker()] : await pickers.showOpenFilePicker({ multiple: true }),
    );
  } catch (/** @type {any} */ error) {
    if (error.name === "AbortError") return [];
    throw error;
  }
}
