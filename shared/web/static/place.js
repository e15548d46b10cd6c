// Takes files that are chosen in a dialog, dropped anywhere on the window, or pasted.
//
// Exports: Place with listen(inputs).

import { find, put } from "./dom.js";
import { canChoose, choose, dropped, foundIn } from "./drop.js";
import { words } from "./texts.js";

/** @import { Found } from "./drop.js" */

export class Place {
  #place;
  #title;
  #text;
  #over = 0; // elements that something is dragged over
  #take;
  #refuses;

  /**
   * `take` gets what is found, or a promise of it; `refuses` says that nothing can be taken now, if that is so.
   * @param {HTMLElement} place
   * @param {{ take: (finding: Found[] | Promise<Found[]>) => void, refuses: () => boolean }} page
   */
  constructor(place, { take, refuses }) {
    this.#place = place;
    this.#title = find(".drop-title", place);
    this.#text = this.#title.textContent;
    this.#take = take;
    this.#refuses = refuses;
  }

  /**
   * Begins to take files, from these inputs too.
   * @param {HTMLInputElement[]} inputs
   */
  listen(inputs) {
    for (const input of inputs) this.#watch(input);
    this.#onDrag("dragenter", () => this.#hover(1));
    this.#onDrag("dragleave", () => this.#hover(-1));
    this.#onDrag("dragover", (event) => event.preventDefault()); // otherwise the browser would open it
    this.#onDrag("drop", (event) => {
      event.preventDefault();
      this.#hover(0);
      this.#take(dropped(/** @type {DataTransfer} */ (event.dataTransfer)));
    });
    addEventListener("paste", ({ clipboardData }) => {
      if (clipboardData?.files.length) this.#take(foundIn(clipboardData.files));
    });
  }

  /** @param {HTMLInputElement} input */
  #watch(input) {
    const folder = input.hasAttribute("webkitdirectory");
    const taken = () => {
      const found = foundIn(input.files ?? []);
      input.value = ""; // so that the same file can be chosen again
      this.#take(found);
    };
    input.addEventListener("change", taken);
    input.addEventListener("click", (event) => {
      if (!canChoose()) return;
      event.preventDefault();
      this.#take(choose(folder));
    });
    if (folder && "webkitdirectory" in input) /** @type {HTMLElement} */ (input.closest("label")).hidden = false;
    if (input.files?.length) taken(); // chosen before this script was loaded
  }

  /** @param {"dragenter" | "dragleave" | "dragover" | "drop"} name @param {(event: DragEvent) => void} act */
  #onDrag(name, act) {
    addEventListener(name, (event) => {
      if (event.dataTransfer?.types.includes("Files")) act(event);
    });
  }

  /** @param {number} change */
  #hover(change) {
    if (this.#refuses()) return;
    this.#over = change && Math.max(0, this.#over + change);
    this.#place.classList.toggle("over", this.#over > 0);
    put(this.#title, this.#over > 0 ? words.t("let-go") : this.#text);
  }
}
