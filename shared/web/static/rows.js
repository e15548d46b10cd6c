// The list of what will be sent, or is being sent.
//
// Exports: Rows with fill(part, choice, sending), mark(shares), focus(item), clear(); amount(choice), what(choice).

import { copyOf, element, find, isolated, put } from "./dom.js";
import { words } from "./texts.js";
import { isolate } from "./words.js";

const MOST_ROWS = 200;
const MOST_PICTURES = 40;
const LARGEST_PICTURE = 10e6; // bytes

/** Says how much is chosen. */
export const amount = (choice) => words.list([words.n("files", choice.count), words.size(choice.size)]);

/** Says what is chosen, for a sentence. */
export const what = ({ single, count }) => (single ? isolated(shortened(single.name)) : words.n("files", count));

export class Rows {
  #rows = new Map(); // by item
  #remove;

  /** `remove` is called with an item whose button is pressed. */
  constructor(remove) {
    this.#remove = remove;
  }

  /** Shows a choice in the list of a part of the page, with buttons or with the progress of each item. */
  fill(part, { items }, sending) {
    const some = items.slice(0, MOST_ROWS);
    for (const item of this.#rows.keys()) if (!some.includes(item)) this.#rows.delete(item);
    some.forEach((item, n) => this.#rows.has(item) || this.#rows.set(item, this.#rowOf(item, n)));
    for (const [item, row] of this.#rows) {
      const size = words.size(item.size);
      put(find(".meta", row), item.folder ? words.list([words.n("files", item.count), size]) : size);
      find("button", row).hidden = sending;
      find(".state", row).hidden = !sending;
    }
    const shown = some.map((item) => this.#rows.get(item));
    const more = items.length - some.length;
    if (more) shown.push(element("li", { textContent: words.t("more", words.n("files", more)) }));
    find(".rows", part).replaceChildren(...shown);
  }

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

  /** Says how much of each item has been sent. */
  mark(shares) {
    for (const [item, share] of shares) {
      if (!this.#rows.has(item)) continue;
      const state = find(".state", this.#rows.get(item));
      state.classList.toggle("good", share === 1);
      put(state, share === 1 ? words.t("done") : share > 0 ? words.percent(share) : words.t("waits"));
    }
  }

  /** Gives the focus to the button of an item. */
  focus(item) {
    if (this.#rows.has(item)) find("button", this.#rows.get(item)).focus();
  }

  /** Forgets all rows, as a picture may have changed. */
  clear() {
    this.#rows.clear();
  }
}

// drawKind shows the icon of an item, or its picture.
function drawKind(row, item, inPicture) {
  const [{ file }] = item.entries;
  const use = find("use", row);
  const kind = find(".kind", row);
  const icon = kind.firstElementChild;
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, `#${item.folder ? "folder" : iconOf(file)}`));
  if (item.folder || !inPicture || file.size >= LARGEST_PICTURE || !/^image\/(?!svg)/.test(file.type)) return;
  const picture = element("img", { alt: "", width: 40, height: 40, src: URL.createObjectURL(file) });
  picture.onload = () => URL.revokeObjectURL(picture.src);
  picture.onerror = () => kind.replaceChildren(icon); // it is not a picture
  kind.replaceChildren(picture);
}

function iconOf({ type, name }) {
  const general = { image: "image", video: "film", audio: "sound", text: "text" }[type.split("/")[0]];
  if (general) return general;
  if (/\.(zip|gz|tgz|bz2|xz|zst|7z|rar|tar)$/i.test(name)) return "bundle";
  return /pdf|document|json/.test(type) ? "text" : "file";
}

// halves cuts a long name in two, so that its end stays visible where there is too little room.
function halves(name) {
  const all = [...name];
  const [ext] = /(\.[^.]{0,7})?$/.exec(name);
  let at = all.length - 4 - [...ext].length;
  while (at > 0 && (/^[\p{M}\u200d]/u.test(all[at]) || all[at - 1] === "\u200d")) at--;
  if (all.length <= 16 || at <= 0 || /[\u0590-\u08ff]/.test(name)) return [name];
  return [all.slice(0, at).join(""), all.slice(at).join("")];
}

function shortened(name) {
  const all = [...name];
  return all.length > 40 ? `${all.slice(0, 26).join("")}…${all.slice(-12).join("")}` : name;
}
