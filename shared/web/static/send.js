// The sending page, and the page of a request. #stage shows one of three states: nothing is chosen,
// with the unfinished uploads; what is chosen; or what is being sent. What was sent has a page of its own.

import { Choice } from "./choice.js";
import { byId, copyOf, find, isolated, label, warn } from "./dom.js";
import { Form } from "./form.js";
import { Place } from "./place.js";
import { Progress } from "./progress.js";
import { amount, Rows, what } from "./rows.js";
import { guestScope, Store } from "./store.js";
import { words } from "./texts.js";
import { Unfinished } from "./unfinished.js";
import { Crier } from "./words.js";

/** @import { Item } from "./choice.js" */
/** @import { Found } from "./drop.js" */
/** @import { Unfinished as Left } from "./store.js" */
/** @import { Options, Source, Upload } from "./upload.js" */

const loading = Promise.all([import("./upload.js"), import("./bundle.js")]).then(([upload, bundle]) => ({
  ...upload,
  ...bundle,
}));
loading.catch(() => {}); // the code that needs it reports the failure

class SendPage {
  #stage;
  /** @type {{ [name: string]: any }} */
  #settings;
  #isGuest;
  #scope; // of unfinished uploads
  /** @type {string[]} */
  #names; // of what an upload may ask for, without the password
  #store;

  #heading = byId("heading");
  #asked = [...this.#heading.childNodes];
  #title = document.title;
  #start = byId("start");
  #drop = find(".drop", this.#start);
  #chosen = copyOf("chosen");
  #primary = find(".action .primary", this.#chosen);
  #form;
  #rows;
  #progress;
  #unfinished;

  #choice = new Choice();
  /** @type {any} */
  #upload = null; // the upload that is not over yet
  /** @type {Left | undefined} */
  #resumed; // the record whose session it resumes, if any
  /** @type {Options} */
  #options = {}; // of the upload

  /** @param {HTMLElement} stage */
  constructor(stage) {
    this.#stage = stage;
    this.#settings = stage.dataset;
    this.#isGuest = this.#settings.token !== undefined;
    this.#scope = this.#settings.scope;
    this.#names = this.#settings.options.split(" ");
    this.#store = new Store({ names: this.#names });
    this.#form = new Form(this.#chosen, this.#settings);
    this.#rows = new Rows((item) => this.#remove(item));
    this.#progress = new Progress(this.#rows, {
      press: (name) => this.#upload && this.#buttons[name]?.(),
      replace: (file) => this.#upload && this.#sendAgain((path) => this.#choice.replace(path, file)),
    });
    this.#unfinished = new Unfinished(this.#store, this.#settings.token, {
      resume: (record, found) => this.#resume(record, found),
      discard: (record) => this.#discard(record),
    });
    this.#chosen.addEventListener("submit", (event) => {
      event.preventDefault();
      const read = this.#form.read();
      if (read) this.#send({ ...read, lang: document.documentElement.lang });
    });
    addEventListener("beforeunload", (event) => {
      if (this.#upload) event.preventDefault();
    });
  }

  /**
   * Begins to take files, and offers what is unfinished. `linked` is the upload of a link from the files page.
   * @param {string | undefined} linked
   */
  async open(linked) {
    const place = new Place(this.#drop, { take: (finding) => this.#take(finding), refuses: () => this.#refuses() });
    place.listen([...this.#start.querySelectorAll("input"), find(".head input", this.#chosen)]);
    if (this.#isGuest) this.#scope = await guestScope(this.#settings.token);
    if (!(await this.#unfinished.load(this.#scope, linked))) warn(this.#start, words.t("wrong.ended"));
    if (this.#unfinished.cards.length && this.#start.isConnected) this.#show(...this.#unfinished.cards, this.#start);
  }

  // What is shown

  /** @param {Element[]} parts */
  #show(...parts) {
    const sending = parts.includes(this.#progress.section);
    this.#stage.replaceChildren(...parts);
    hide("[data-empty]", !parts.includes(this.#start));
    hide("[data-about]", sending);
    this.#drop.classList.toggle("low", this.#unfinished.cards.length > 0 || "low" in this.#drop.dataset);
    if (sending) return;
    this.#heading.replaceChildren(...this.#asked);
    document.title = this.#title;
  }

  /** @param {string} text */
  #say(text) {
    if (text) byId("said").textContent = text;
  }

  // Choosing

  // take adds files to the choice, unless something is being sent.
  /** @param {Found[] | Promise<Found[]>} finding */
  async #take(finding) {
    const found = await Promise.resolve(finding).catch(() => null);
    if (this.#refuses()) return;
    warn(this.#start);
    if (!found) return warn(this.#chosen.isConnected ? this.#chosen : this.#start, words.t("wrong.unreadable"));
    if (!found.length) return;
    this.#choice.add(found);
    for (const record of this.#unfinished.records) if (await this.#resume(record)) return;
    this.#edit();
    this.#primary.focus({ preventScroll: true });
  }

  // refuses reports whether something is being sent, and says that more can be sent later.
  #refuses() {
    if (!this.#upload) return false;
    this.#say(this.#progress.later());
    return true;
  }

  /** @param {Item} item */
  #remove(item) {
    const at = this.#choice.items.indexOf(item);
    this.#choice.remove(item);
    this.#edit();
    const next = this.#choice.items[at] ?? this.#choice.items.at(-1); // the focus would be lost with the button
    if (next) this.#rows.focus(next);
  }

  // edit shows what is chosen, and the form around it.
  #edit() {
    const { items, single, size } = this.#choice;
    if (!items.length) {
      this.#show(...this.#unfinished.cards, this.#start);
      return find("input", this.#start).focus();
    }
    this.#rows.fill(this.#chosen, this.#choice, false);
    find(".head b", this.#chosen).textContent = amount(this.#choice);
    label(this.#primary, words.parts("send", what(this.#choice), words.size(size)));
    this.#form.propose(single ? "" : this.#choice.name(words));
    const room = Number(this.#settings.room ?? Infinity);
    warn(this.#chosen, size > room ? words.t("room", words.size(size), words.size(room)) : "");
    if (!this.#chosen.isConnected) this.#show(this.#chosen);
  }

  // Sending

  // send sends what is chosen, in a new session or in that of a record.
  /** @param {Options} options @param {Left} [resume] */
  async #send(options, resume) {
    if (this.#upload || this.#primary.ariaBusy === "true") return;
    this.#primary.ariaBusy = "true";
    this.#options = options;
    this.#resumed = resume;
    try {
      const engine = await loading;
      const source = this.#choice.source(engine, resume?.name ?? this.#name());
      const guest = await this.#guest();
      const kept = { names: this.#names, store: this.#store, scope: this.#scope, handles: this.#choice.handles };
      this.#upload = new engine.Upload(source, { ...options, ...kept, guest, resume });
      await this.#run(Boolean(resume));
    } catch (error) {
      this.#refuse(error);
    } finally {
      this.#primary.ariaBusy = "false";
    }
  }

  #name() {
    if (this.#choice.single) return this.#choice.single.name;
    const name = this.#form.bundle || this.#choice.name(words);
    return /\.zip$/i.test(name) ? name : `${name}.zip`;
  }

  async #guest() {
    const { join } = await loading;
    return this.#isGuest ? join(this.#settings.token) : undefined;
  }

  // run starts the upload, or restarts it.
  /** @param {boolean} [begun] */
  async #run(begun) {
    const crier = new Crier(words);
    /** @type {Upload} */
    const upload = this.#upload;
    if (begun) this.#begin();
    upload.onchange = (snapshot) => {
      if (this.#upload !== upload) return;
      const { id, state } = snapshot;
      if ((id || state === "offline") && state !== "failed" && !this.#progress.section.isConnected) this.#begin();
      if (this.#progress.section.isConnected) this.#progress.draw(snapshot, this.#choice);
      this.#say(crier.say(snapshot));
    };
    const { id } = await upload.start();
    this.#upload = null; // the visitor may leave now
    const { d } = this.#options;
    const sent = `send?${new URLSearchParams({ sent: String(id), ...(d && { d }) })}`;
    location.replace(this.#isGuest ? `${this.#settings.back}&sent=1` : sent);
  }

  #begin() {
    const chosen = what(this.#choice);
    this.#heading.replaceChildren(
      ...(this.#isGuest
        ? words.parts("sending-to", chosen, isolated(this.#settings.user))
        : words.parts("sending", chosen)),
    );
    this.#progress.begin(this.#choice);
    this.#show(...this.#progress.parts);
    this.#progress.draw(this.#upload.snapshot(), this.#choice);
    this.#heading.focus();
  }

  /** @type {{ [name: string]: () => void }} */
  #buttons = {
    pause: () => this.#upload.pause(),
    resume: () => this.#upload.resume(),
    retry: () => {
      warn(this.#progress.section);
      this.#run().catch((error) => this.#refuse(error));
    },
    leave: () => this.#sendAgain((path) => this.#choice.without(path)),
    cancel: async () => {
      if (!(await this.#stop())) return;
      this.#edit();
      this.#primary.focus({ preventScroll: true });
      this.#say(words.t("cancelled"));
    },
  };

  // stop ends the upload. It returns false if the upload was already complete.
  async #stop() {
    if (!(await this.#upload.cancel())) return false;
    this.#upload = null;
    this.#unfinished.leave(this.#resumed);
    return true;
  }

  // sendAgain sends the choice again, after a change to the file that is no longer the same.
  /** @param {(path: string) => void} change */
  async #sendAgain(change) {
    const { path } = this.#upload.snapshot().error;
    if (!(await this.#stop())) return;
    change(path);
    this.#rows.clear(); // a picture may have changed
    this.#edit();
    if (this.#resumed?.protected)
      warn(this.#chosen, words.t("wrong.gone")); // its password is not known here
    else if (this.#choice.items.length) this.#send(this.#options);
  }

  // What goes wrong

  // refuse says why nothing is sent: beside the field that caused it, or else above the form or below the bar.
  /** @param {any} error */
  #refuse(error) {
    const { code, status, parameter, path } = error;
    if (code === "cancelled") return;
    if (code === "password" || (this.#isGuest && (status === 401 || status === 403))) {
      this.#upload = null; // or the browser would ask whether to leave
      return location.reload(); // the reloaded page says why
    }
    if (code === "other" && this.#resumed) return this.#chooseOthers(this.#resumed);
    const ended = code === "gone" || status === 410; // trying again does not help
    const key = wrong(error, ended);
    const text = words.parts(key, isolated(path || this.#choice.single?.name || ""));
    if (this.#upload && !ended && this.#progress.section.isConnected && this.#upload.snapshot().id) {
      this.#progress.draw(this.#upload.snapshot(), this.#choice);
      return warn(this.#progress.section, text);
    }
    if (ended) this.#unfinished.leave(this.#resumed);
    this.#upload = null;
    this.#edit();
    if (!this.#form.blame(parameter, text)) warn(this.#chosen, text);
  }

  // chooseOthers goes back to an unfinished upload whose files are not those chosen. What has arrived stays.
  /** @param {Left} record */
  #chooseOthers(record) {
    this.#upload = null;
    this.#choice = new Choice();
    this.#edit();
    this.#unfinished.chooseAgain(record, "wrong.other");
  }

  // What is unfinished

  // resume resumes an unfinished upload, if what is chosen is exactly what it sends.
  /** @param {Left} record @param {Found[]} [found] */
  async #resume(record, found) {
    const { Bundle } = await loading;
    const choice = found ? new Choice() : this.#choice;
    if (found) choice.add(found);
    if (!choice.fits(record, Bundle)) return false;
    this.#choice = choice;
    this.#send(record.options, record);
    return true;
  }

  /** @param {Left} record */
  async #discard(record) {
    const { Upload } = await loading;
    const source = /** @type {Source} */ ({ name: record.name, length: record.size });
    await new Upload(source, { resume: record, store: this.#store, guest: await this.#guest() }).cancel();
    this.#unfinished.leave(record);
    this.#edit();
  }
}

// hide hides parts of the page, or shows them.
/** @param {string} selector @param {boolean} hidden */
function hide(selector, hidden) {
  for (const part of document.querySelectorAll(selector)) /** @type {HTMLElement} */ (part).hidden = hidden;
}

// wrong returns the key of the text that says why nothing is sent.
/** @param {any} error @param {boolean} ended */
function wrong({ name, code, status, parameter, path }, ended) {
  const keys = [
    ended && "gone",
    name === "BundleError" && (path ? "name" : "bundle"),
    parameter?.includes(",") ? "many" : parameter,
    code,
    status,
    "internal",
  ];
  return `wrong.${keys.find((key) => key && words.has(`wrong.${key}`))}`;
}

const [, linked] = location.hash.match(/^#upload=(.+)/) ?? [];
await new SendPage(byId("stage")).open(linked);
