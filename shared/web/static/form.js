// The form around what is chosen: recipients, options, and what is wrong with them.
//
//   const form = new Form(element, stage.dataset);   // a guest's form has no recipients and options
//   const asked = form.read();      // options for an Upload, or null after showing what is wrong
//   form.blame('d', text);          // false if that parameter has no field
//
// Exports: Form with read(), blame(parameter, text), bundle, propose(name).

import { copyOf, element, find, isolated } from "./dom.js";
import { people } from "./people.js";
import { words } from "./texts.js";
import { isolate } from "./words.js";

/** @import { Person } from "./people.js" */

export class Form {
  #form;
  #settings;
  #to;
  /** @type {Person[]} */
  #people = [];

  /** @param {HTMLElement} form @param {{ [name: string]: any }} settings */
  constructor(form, settings) {
    this.#form = form;
    this.#settings = settings;
    this.#to = find("#to", form);
    if (!this.#to) return; // a guest's form
    this.#to.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#key(event));
    this.#to.addEventListener("paste", (/** @type {ClipboardEvent} */ event) => {
      const text = event.clipboardData?.getData("text");
      if (!text) return;
      event.preventDefault();
      this.#add(`${this.#to.value} ${text}`);
    });
    this.#to.addEventListener("blur", () => this.#to.value.trim() && this.#add(this.#to.value));
    form.addEventListener("input", (/** @type {any} */ { target }) => {
      if (target !== this.#to && target.closest(".field")) wrong(target);
      this.#summarize();
    });
    this.#summarize();
  }

  /** @param {string} name @returns {any} */
  #field(name) {
    return /** @type {any} */ (this.#form).elements[name];
  }

  // Recipients

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { key, isComposing } = event,
      typed = this.#to.value.trim();
    if ((key === "," || key === ";" || (key === "Enter" && typed)) && !isComposing) {
      event.preventDefault();
      this.#add(typed);
    } else if (key === "Backspace" && !this.#to.value && this.#people.length) {
      event.preventDefault();
      this.#to.value = this.#people.pop()?.text;
      this.#draw();
    }
  }

  /** @param {string} text */
  #add(text) {
    for (const one of people(text, "region" in this.#settings)) {
      if (this.#people.some(({ value }) => value.toLowerCase() === one.value.toLowerCase())) continue;
      if (one.kind === "c" && !("mobiles" in this.#settings)) one.kind = "";
      this.#people.push(one);
    }
    this.#to.value = "";
    this.#draw();
  }

  #draw() {
    const chips = this.#people.map((one) => {
      const chip = copyOf("chip"),
        name = find("bdi", chip),
        button = find("button", chip);
      chip.classList.toggle("bad", !one.kind);
      name.textContent = one.text;
      if (one.kind === "c") name.dir = "ltr";
      button.ariaLabel = words.t("remove", isolate(one.text));
      button.onclick = () => {
        this.#people = this.#people.filter((other) => other !== one);
        this.#draw();
        this.#to.focus();
      };
      return chip;
    });
    const last = this.#to.parentElement; // stays where it is, or it would lose the focus
    while (last.previousElementSibling) last.previousElementSibling.remove();
    last.before(...chips);
    const bad = this.#people.find(({ kind }) => !kind),
      many = this.#people.length > this.#settings.most;
    wrong(this.#to, bad ? words.parts("wrong.recipient", isolated(bad.text)) : many && words.t("wrong.many"));
  }

  // Options

  #summarize() {
    const other = this.#field("area").value === "other",
      user = this.#field("d").value.trim(),
      limit = Number(this.#field("downloads").value);
    find("[data-state]", this.#form).textContent = words.list([
      ...(other ? [user ? words.t("state.area", isolate(user)) : words.t("state.other")] : []),
      this.#field("expires").selectedOptions[0].dataset.say,
      limit > 0 ? words.n("state.downloads", limit) : words.t("state.no-limit"),
      words.t(this.#field("password").value ? "state.password" : "state.no-password"),
    ]);
  }

  /** The name of the bundle that the user wants, or nothing. */
  get bundle() {
    return find("#bundle", this.#form)?.value.trim();
  }

  /**
   * Fills in a name for the bundle, unless the user has changed it. Without one, there is no bundle.
   * @param {string} name
   */
  propose(name) {
    const field = find("#bundle", this.#form);
    if (!field) return;
    find("[data-bundle]", this.#form).hidden = !name;
    if (field.value === field.defaultValue) field.value = field.defaultValue = name;
  }

  /** Returns what the form asks for. If something is wrong, it shows that and returns null. */
  read() {
    if (!this.#to) return set({ by: this.#field("by").value.trim() });
    const message = this.#field("way").value === "message",
      other = this.#field("area").value === "other",
      limit = this.#field("downloads");
    if (message && this.#to.value.trim()) this.#add(this.#to.value);
    if (message && !this.#people.length) wrong(this.#to, words.t("wrong.nobody"));
    if (!limit.validity.valid) wrong(limit, words.t("wrong.downloads"));
    if (other && !this.#field("d").value.trim()) wrong(this.#field("d"), words.t("wrong.no-user"));
    const bad = [...this.#form.querySelectorAll('[aria-invalid="true"]')].find(
      (/** @type {any} */ field) => (message || field !== this.#to) && (other || field.name !== "d"),
    );
    if (bad) return reveal(bad);
    const of = (/** @type {string} */ kind) =>
      this.#people.filter((one) => one.kind === kind).map(({ value }) => value);
    /** @type {string[]} */
    const names = [...this.#settings.options.split(" "), "password"];
    /** @type {{ [name: string]: any }} */
    const asked = Object.fromEntries(names.map((name) => [name, valueOf(this.#field(name))]));
    return set({
      ...asked,
      ...(message && { m: of("m"), c: of("c") }),
      i: message && asked.i.trim(),
      d: other && asked.d.trim(),
    });
  }

  /**
   * Says beside a parameter's field that the parameter is wrong. Returns false if it has no field.
   * @param {string | undefined} parameter @param {string | (string | Node)[]} text
   */
  blame(parameter, text) {
    if (!parameter) return false;
    const toPeople = ["m", "c", "c, m"].includes(parameter) && this.#to;
    const field = toPeople || this.#field(parameter);
    if (!field?.closest?.(".field")) return false;
    if (toPeople) this.#field("way").value = "message";
    wrong(field, text);
    reveal(field);
    return true;
  }
}

// wrong says below a field what is wrong with it. Without a text, it removes the message.
/** @param {any} field @param {string | false | (string | Node)[]} [text] */
function wrong(field, text) {
  const id = `${field.id}-error`,
    box = field.closest(".field"),
    hint = find(".hint", box)?.id ?? "";
  find(".error", box)?.remove();
  if (text) {
    const error = element("span", { id, className: "error" });
    error.setAttribute("role", "alert");
    box.append(error); // before its text, or it is not read out
    error.append(...[text].flat());
    field.setAttribute("aria-invalid", "true");
  } else {
    field.removeAttribute("aria-invalid");
  }
  field.setAttribute("aria-describedby", text ? `${id} ${hint}` : hint);
}

/** @param {any} field */
function reveal(field) {
  const fold = field.closest("details");
  if (fold) fold.open = true;
  field.focus();
  return null;
}

/** @param {any} field */
function valueOf(field) {
  if (field?.type === "checkbox") return field.checked;
  return field?.type === "number" ? Number(field.value) : field?.value;
}

// set returns only the fields that have a value.
/** @param {{ [name: string]: any }} all */
function set(all) {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => (Array.isArray(value) ? value.length : value)));
}
