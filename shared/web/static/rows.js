// The list of what will be sent, or is being sent.
//
// Exports: Rows with fill(part, choice, sending), mark(shares), focus(item), clear(); amount(choice), what(choice).

import { copyOf, element, find, isolated, put } from "./dom.js";
import { words } from "./texts.js";
import { isolate } from "./words.js";

/** @import { Choice, Item } from "./choice.js" */

const MOST_ROWS = 200;
const MOST_PICTURES = 40;
const LARGEST_PICTURE = 10e6; // bytes

/**
 * Says how much is chosen.
 * @type {(choice: Choice) => string}
 */
export const amount = (choice) => words.list([words.n("files", choice.count), words.size(choice.size)]);

/**
 * Says what is chosen, for a sentence.
 * @type {(choice: Choice) => string | Node}
 */
export const what = ({ single, count }) => (single ? isolated(shortened(single.name)) : words.n("files", count));

export class Rows {
  /** @type {Map<Item, HTMLElement>} */
  #rows = new Map(); // by item
  #remove;

  /**
   * `remove` is called with an item whose button is pressed.
   * @param {(item: Item) => void} remove
   */
  constructor(remove) {
    this.#remove = remove;
  }

  /**
   * Shows a choice in the list of a part of the page, with buttons or with the progress of each item.
   * @param {ParentNode} part @param {Choice} choice @param {boolean} sending
   */
  fill(part, { items }, sending) {
    const some = items.slice(0, MOST_ROWS);
    for (const item of this.#rows.keys()) if (!some.includes(item)) this.#rows.delete(item);
    const shown = some.map((item, n) => this.#rows.get(item) ?? this.#rowOf(item, n));
    some.forEach((item, n) => this.#rows.set(item, shown[n]));
    for (const [item, row] of this.#rows) {
      const size = words.size(item.size);
      put(find(".meta", row), item.folder ? words.list([words.n("files", item.count), size]) : size);
      find("button", row).hidden = sending;
      find(".state", row).hidden = !sending;
    }
    const more = items.length - some.length;
    if (more) shown.push(element("li", { textContent: words.t("more", words.n("files", more)) }));
    find(".rows", part).replaceChildren(...shown);
  }

  /** @param {Item} item @param {number} n */
  #rowOf(item, n) {
    const row = copyOf("row");
    const name = find(".name", row);
    const [head, tail] = halves(item.name);
    name.append(element("span", { textContent: head }));
    if (tail) {
      name.append(element("span", { textContent: tail }));
      name.title = item.name;
    }
    drawKind(row, item, n < MOST_PICTURES);
    const button = find("button", row);
    button.ariaLabel = words.t("remove", isolate(item.name));
    button.onclick = () => this.#remove(item);
    return row;
  }

  /**
   * Says how much of each item has been sent.
   * @param {Map<Item, number>} shares
   */
  mark(shares) {
    for (const [item, row] of this.#rows) {
      const share = shares.get(item) ?? 0;
      const state = find(".state", row);
      state.classList.toggle("good", share === 1);
      put(state, share === 1 ? words.t("done") : share > 0 ? words.percent(share) : words.t("waits"));
    }
  }

  /**
   * Gives the focus to the button of an item.
   * @param {Item} item
   */
  focus(item) {
    const row = this.#rows.get(item);
    if (row) find("button", row).focus();
  }

  /** Forgets all rows, as a picture may have changed. */
  clear() {
    this.#rows.clear();
  }
}

// drawKind shows the icon of an item, or its picture.
/** @param {HTMLElement} row @param {Item} item @param {boolean} inPicture */
function drawKind(row, item, inPicture) {
  const [{ file }] = item.entries;
  const use = find("use", row);
  const kind = find(".kind", row);
  const icon = kind.firstElementChild;
  use.setAttribute(
    "href",
    use.getAttribute("href").replace(/#.*/, `#${item.folder || !file ? "folder" : iconOf(file)}`),
  );
  if (item.folder || !file || !inPicture) return;
  if (file.size >= LARGEST_PICTURE || !/^image\/(?!svg)/.test(file.type)) return;
  const picture = element("img", { alt: "", width: 40, height: 40, src: URL.createObjectURL(file) });
  picture.onload = () => URL.revokeObjectURL(picture.src);
  picture.onerror = () => kind.replaceChildren(icon); // it is not a picture
  kind.replaceChildren(picture);
}

/** @param {File} file */
function iconOf({ type, name }) {
  /** @type {{ [kind: string]: string }} */
  const general = { image: "image", video: "film", audio: "sound", text: "text" };
  const [kind] = type.split("/");
  if (general[kind]) return general[kind];
  if (/\.(zip|gz|tgz|bz2|xz|zst|7z|rar|tar)$/i.test(name)) return "bundle";
  return /pdf|document|json/.test(type) ? "text" : "file";
}

// halves cuts a long name in two, so that its end stays visible where there is too little room.
/** @param {string} name */
function halves(name) {
  const all = [...name];
  const [ext] = /** @type {RegExpExecArray} */ (/(\.[^.]{0,7})?$/.exec(name));
  let at = all.length - 4 - [...ext].length;
  while (at > 0 && (/^[\p{M}\u200d]/u.test(all[at]) || all[at - 1] === "\u200d")) at--;
  if (all.length <= 16 || at <= 0 || /[\u0590-\u08ff]/.test(name)) return [name];
  return [all.slice(0, at).join(""), all.slice(at).join("")];
}

/** @param {string} name */
function shortened(name) {
  const all = [...name];
  return all.length > 40 ? `${all.slice(0, 26).join("")}…${all.slice(-12).join("")}` : name;
}
