// Offers the uploads that this browser has not finished. If it has handles of the files, an upload
// is resumed with one click; otherwise the files are chosen again.
//
// Exports: Unfinished with load(scope, linked), cards, records, has(record), leave(record), chooseAgain(record, key).

import { copyOf, element, find, isolated, label, warn } from "./dom.js";
import { foundIn, reopened } from "./drop.js";
import { Service } from "./service.js";
import { words } from "./texts.js";

/** @import { Found } from "./drop.js" */
/** @import { Store, Unfinished as Left } from "./store.js" */
/**
 * @typedef {{
 *   resume: (record: Left, found: Found[]) => Promise<boolean>, discard: (record: Left) => void,
 * }} Page
 * @typedef {{ section: HTMLElement, chooseAgain: (key?: string) => void }} Card
 */

const MOST = 3;

export class Unfinished {
  /** @type {Map<Left, Card>} */
  #cards = new Map(); // by record
  #service = new Service({});
  /** @type {{ [name: string]: string }} */
  #headers;
  #store;
  #page;

  /**
   * `page` has resume(record, found), which returns false if these are other files, and
   * discard(record). A guest's page has a token.
   * @param {Store} store @param {string | undefined} token @param {Page} page
   */
  constructor(store, token, page) {
    this.#store = store;
    this.#headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    this.#page = page;
  }

  /**
   * Looks for the uploads of a scope. That of a link comes first; if it has ended, this returns false.
   * @param {string | undefined} scope @param {string | undefined} linked
   */
  async load(scope, linked) {
    const records = scope ? await this.#store.list(scope) : [];
    const wanted = linked && (records.find(({ id }) => id === linked) ?? (await this.#recordOf(linked, scope)));
    const ordered = wanted ? [wanted, ...records.filter((record) => record !== wanted)] : records;
    const cards = new Map();
    for (const record of ordered.slice(0, MOST)) {
      const session = await this.#sessionOf(record.id);
      if (session) cards.set(record, card(record, session, this.#page));
    }
    this.#cards = cards;
    return !linked || cards.has(wanted);
  }

  get cards() {
    return [...this.#cards.values()].map(({ section }) => section);
  }

  get records() {
    return [...this.#cards.keys()];
  }

  /**
   * Offers an upload no longer.
   * @param {Left | undefined} record
   */
  leave(record) {
    if (record) this.#cards.delete(record);
  }

  /**
   * Asks for the files of an upload, and says why.
   * @param {Left} record @param {string} key
   */
  chooseAgain(record, key) {
    this.#cards.get(record)?.chooseAgain(key);
  }

  // sessionOf returns a session, or null once it has ended.
  /** @param {string} id */
  async #sessionOf(id) {
    try {
      const session = await this.#service.call("GET", `uploads/${encodeURIComponent(id)}`, { headers: this.#headers });
      if (session?.state === "open") return session;
      if (!session) return null;
    } catch (/** @type {any} */ error) {
      if (error.status !== 404) return null;
    }
    await this.#store.delete(id);
    return null;
  }

  // recordOf returns a record of an upload that another program or browser began, or null if it
  // cannot be resumed here. Its options are not known here, so no other session may be begun for it.
  /** @param {string} id @param {string | undefined} scope @returns {Promise<Left | null>} */
  async #recordOf(id, scope) {
    const session = await this.#sessionOf(id);
    if (!session || session.from || session.request || session.length === undefined) return null;
    const { name, length, type, d, arrived } = session;
    const first = arrived.find((/** @type {{ number: number }} */ { number }) => number === 1)?.crc64nvme;
    return { id, scope, name, size: length, type, first, protected: true, options: { d } };
  }
}

// card returns the section of an upload, with its buttons, and chooseAgain(key).
/** @param {Left} record @param {{ arrived?: { size: number }[], expires: string }} session @param {Page} page */
function card(record, { arrived = [], expires }, page) {
  const section = copyOf("unfinished");
  const resume = find('[data-do="resume"]', section);
  const again = find("label", section);
  const input = find("input", again);
  describe(
    section,
    record,
    arrived.reduce((sum, { size }) => sum + size, 0),
    expires,
  );

  const use = async (/** @type {Found[]} */ found) => {
    if (found.length && !(await page.resume(record, found))) chooseAgain("wrong.other");
  };
  const chooseAgain = (/** @type {string | undefined} */ key = undefined) => {
    resume.hidden = true;
    again.hidden = false;
    if (!key) return;
    warn(section, words.parts(key, isolated(record.name)));
    input.focus();
  };
  resume.onclick = async () => {
    try {
      const { handles = [] } = record;
      if (!(await mayRead(handles))) return chooseAgain("wrong.denied");
      await use(await reopened(handles));
    } catch {
      chooseAgain("wrong.missing");
    }
  };
  again.hidden = true;
  if (!record.handles?.length) chooseAgain();
  input.multiple = record.bundle !== false;
  const folder = record.entries?.[0].split("/", 1) + "/";
  input.webkitdirectory = Boolean(record.entries?.every((path) => path.startsWith(folder)));
  input.onchange = () => {
    const found = foundIn(input.files ?? []);
    input.value = "";
    use(found);
  };
  const discard = find('[data-do="discard"]', section);
  label(discard, words.parts("discard", isolated(record.name)));
  discard.onclick = () => page.discard(record);
  return { section, chooseAgain };
}

// describe says what was sent of an upload, and how long it can be resumed.
/** @param {HTMLElement} section @param {Left} record @param {number} sent @param {string} expires */
function describe(section, { name, size }, sent, expires) {
  const share = size ? sent / size : 0;
  const until = new Date(expires);
  const time = element("time", { dateTime: expires, title: words.exact(until), textContent: words.day(until) });
  find("h2", section).append(...words.parts("go-on", isolated(name)));
  find("p", section).append(...words.parts("unfinished", words.percent(share), words.of(sent, size), time));
  const bar = find("progress", section);
  bar.value = Math.floor(share * 100);
  bar.ariaLabel = name;
  find("details p", section).textContent = words.t("discard-text", words.size(sent));
}

/** @param {any[]} handles */
async function mayRead(handles) {
  const mode = { mode: "read" };
  for (const handle of handles) {
    if (!handle.queryPermission || (await handle.queryPermission(mode)) === "granted") continue;
    if ((await handle.requestPermission(mode)) !== "granted") return false;
  }
  return true;
}
