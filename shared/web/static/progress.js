// What is shown while files are sent: a bar, what it says, and what can be done.
//
// Exports: Progress with section, parts, begin(choice), draw(snapshot, choice), later().

import { byId, find, label, put, warn } from "./dom.js";
import { amount, what } from "./rows.js";
import { words } from "./texts.js";
import { describe } from "./words.js";

/** @import { Choice } from "./choice.js" */
/** @import { Rows } from "./rows.js" */
/** @import { Snapshot } from "./upload.js" */

export class Progress {
  /** @type {HTMLElement} */
  section;
  /** @type {HTMLElement} */
  #list;
  #rows;
  #title = document.title;

  /**
   * `press` is called with the name of a button, and `replace` with a file that is chosen again.
   * @param {Rows} rows
   * @param {{ press: (name: string) => void, replace: (file: File) => void }} page
   */
  constructor(rows, { press, replace }) {
    const [section, list] = byId("sending").content.cloneNode(true).children;
    this.section = section;
    this.#list = list;
    this.#rows = rows;
    this.section.addEventListener("click", (/** @type {any} */ { target }) =>
      press(target.closest("[data-do]")?.dataset.do),
    );
    find('[data-do="again"] input', this.section).addEventListener("change", (/** @type {any} */ { target }) => {
      const [file] = target.files;
      target.value = "";
      if (file) replace(file);
    });
  }

  get parts() {
    return [this.section, this.#list];
  }

  /**
   * Prepares for what is chosen.
   * @param {Choice} choice
   */
  begin(choice) {
    this.#rows.fill(this.#list, choice, true);
    find("h2", this.#list).textContent = amount(choice);
    label(find('[data-do="cancel"]', this.section), words.parts("cancel", what(choice)));
    find("details", this.section).open = false;
    find("[data-later]", this.section).hidden = true;
    warn(this.section);
  }

  /**
   * Shows how far an upload is.
   * @param {Snapshot} snapshot @param {Choice} choice
   */
  draw(snapshot, choice) {
    const now = describe(snapshot, words);
    const bar = find("progress", this.section);
    const [, line, more] = /** @type {HTMLElement[]} */ ([...this.section.querySelectorAll("p")]);
    put(find(".percent", this.section), now.percent);
    bar.value = Math.floor(now.share * 100);
    bar.classList.toggle("held", now.held);
    line.className = now.busy ? "busy" : "line num";
    find(".warn", line).hidden = snapshot.state !== "offline";
    put(find("span:last-child", line), now.line);
    put(more, now.more);
    more.hidden = !now.more;
    this.#offer(now, snapshot, choice);
    this.#rows.mark(choice.shares(now.share));
    document.title = `${now.percent} – ${this.#title}`;
  }

  // offer shows the buttons that are of use now.
  /** @param {{ can: string }} now @param {Snapshot} snapshot @param {Choice} choice */
  #offer({ can }, { state, error }, { single }) {
    const failed = state === "failed";
    const changed = error?.code === "changed";
    /** @type {{ [name: string]: boolean }} */
    const shown = {
      pause: can === "pause",
      resume: can === "resume",
      again: changed,
      leave: changed && !single,
      retry: failed && !changed,
    };
    for (const name in shown) find(`[data-do="${name}"]`, this.section).hidden = !shown[name];
    find("details", this.section).hidden = state === "completing" || state === "done";
  }

  /** Says that no more can be sent now. Returns what it says, or nothing if it is there already. */
  later() {
    const later = find("[data-later]", this.section);
    if (!later.hidden) return "";
    later.hidden = false;
    return later.textContent;
  }
}
