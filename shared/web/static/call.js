// Sends a page's forms to the API, and then shows the page as it is now. A form says what it calls
// in data-call="PATCH v1/files/7", where to go afterwards in data-then, and what to say in
// data-said. fields.js reads its fields. Elements that need this module have data-js, and are
// hidden without it.

import { byId, element, find, pageAt } from "./dom.js";
import { address, collect, explain } from "./fields.js";
import { Service } from "./service.js";
import { isolate, Words } from "./words.js";

const read = (/** @type {string} */ id) => JSON.parse(byId(id).textContent);
const errors = read("error-texts"),
  words = new Words(read("call-texts"));
const service = new Service({ base: "" });
const main = () => find("main");

/** @param {Element} root */
function reveal(root) {
  for (const e of root.querySelectorAll("[data-js]")) /** @type {HTMLElement} */ (e).hidden = false;
}

/**
 * Makes a call such as "PATCH v1/files/7".
 * @param {string} call @param {object} [body]
 */
function ask(call, body) {
  const [method, path] = call.split(" ");
  return service.call(method, path, { body });
}

/**
 * Shows the page at an address in place of this one, and then says what has happened.
 * @param {string} to @param {string} [text] @param {string} [colour]
 */
async function show(to, text, colour) {
  const found = await pageAt(to).catch(() => null);
  if (!found) return say(colour === "bad" ? text : words.t("stale"), "bad");
  /** @type {HTMLElement | null} */
  const fresh = find("main", found.page);
  if (!fresh || found.redirected) return location.assign(to);
  reveal(fresh);
  main().replaceWith(fresh);
  document.title = found.page.title;
  history.replaceState(null, "", to);
  const first = find("[autofocus], .alert[tabindex]", fresh) ?? fresh;
  first.focus();
  if (first.readOnly) first.select();
  say(text, colour);
}

/**
 * Says what has happened, at the top of what was changed, in place of any earlier message.
 * @param {string} [text] @param {string} colour
 */
function say(text, colour = "good") {
  if (!text) return;
  main().querySelector(".said")?.remove();
  const div = element("div");
  div.append(element("p", { textContent: text }));
  const alert = element("div", { className: `alert said ${colour}`, tabIndex: -1 });
  alert.role = colour === "good" ? "status" : "alert";
  alert.append(div);
  const place = main().querySelector(".panel > .head") ?? main().querySelector(":scope > .head");
  if (place) place.after(alert);
  else main().prepend(alert);
  alert.focus();
}

// fieldsOf returns the fields of a form.
/** @param {HTMLFormElement} form */
function fieldsOf(form) {
  return /** @type {HTMLInputElement[]} */ ([...form.elements]).filter((e) => e.name);
}

/**
 * Shows what is wrong beside the field that it is about, or at the end of the form.
 * @param {HTMLFormElement} form @param {string} text @param {string} parameter
 */
function complain(form, text, parameter) {
  const names = parameter.split(", ").filter((name) => name !== "");
  const field = fieldsOf(form).find((e) => {
    const also = (e.dataset.parameters ?? "").split(" ");
    return names.some((name) => e.name === name || also.includes(name));
  });
  const error = element("span", { className: "error", id: `${field?.id ?? "form"}-error`, textContent: text });
  error.role = "alert";
  const place = field?.closest(".joined") ?? field ?? form.lastElementChild;
  place?.after(error);
  if (!field) return;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", `${error.id} ${field.getAttribute("aria-describedby") ?? ""}`.trim());
  field.focus();
}

/** @param {HTMLFormElement} form */
function forgive(form) {
  for (const error of form.querySelectorAll(".error")) {
    for (const field of form.querySelectorAll("[aria-invalid]")) {
      field.removeAttribute("aria-invalid");
      const others = (field.getAttribute("aria-describedby") ?? "")
        .split(" ")
        .filter((id) => id !== error.id)
        .join(" ");
      if (others) field.setAttribute("aria-describedby", others);
      else field.removeAttribute("aria-describedby");
    }
    error.remove();
  }
}

/** @param {HTMLFormElement} form @param {HTMLElement | null} button @param {() => Promise<void>} work */
async function whileBusy(form, button, work) {
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  const buttons = /** @type {HTMLButtonElement[]} */ ([...form.elements]).filter((e) => e.type === "submit");
  for (const b of buttons) b.disabled = true;
  const slow = setTimeout(() => button && (button.ariaBusy = "true"), 300); // a shorter wait needs no sign
  try {
    await work();
  } finally {
    clearTimeout(slow);
    form.ariaBusy = "false";
    if (button) button.ariaBusy = "false";
    for (const b of buttons) b.disabled = false;
  }
}

/** @param {HTMLFormElement} form */
async function call(form) {
  forgive(form);
  const fields = fieldsOf(form).map((e) => {
    const { name, type, value, checked, dataset: data } = e;
    return { name, type, value, checked, data };
  });
  const { json, wrong, name = "" } = collect(fields);
  if (wrong) return complain(form, words.t("recipients", wrong.map(isolate).join(", ")), name);
  let answer;
  try {
    answer = await ask(form.dataset.call ?? "", fields.length ? json : undefined);
  } catch (/** @type {any} */ error) {
    return complain(form, explain(error, errors, words), error.parameter);
  }
  await show(address(form.dataset.then ?? location.href, answer), form.dataset.said);
}

/**
 * Makes a call for each of several files, and reports the progress. Returns what is done, and what failed.
 * @param {string[]} ids @param {(id: string) => string} callOf @param {(text: string) => void} progress
 */
async function each(ids, callOf, progress) {
  /** @type {string[]} */
  const done = [];
  let failed = 0;
  let why = "";
  for (const [i, id] of ids.entries()) {
    progress(words.t("progress", i + 1, ids.length));
    try {
      await ask(callOf(id));
      done.push(id);
    } catch (/** @type {any} */ error) {
      failed++;
      why = explain(error, errors, words);
    }
  }
  return { done, problem: failed ? words.t("partly", failed, why) : "" };
}

/** @type {(form: HTMLFormElement, selector: string) => HTMLInputElement[]} */
const boxes = (form, selector) => [...form.querySelectorAll(selector)].map((e) => /** @type {HTMLInputElement} */ (e));
const chosen = (/** @type {HTMLFormElement} */ form) => boxes(form, '[name="id"]:checked');

/** @param {HTMLFormElement} form @param {string} what */
async function bulk(form, what) {
  const backup = form.dataset.area === "backup";
  const ids = chosen(form).map((e) => e.value);
  const status = find("[data-chosen]", form);
  const remove = (/** @type {string} */ id) => `DELETE v1/files/${id}${backup ? "?area=backup" : ""}`;
  const { done, problem } = await each(
    ids,
    what === "restore" ? restore : remove,
    (text) => (status.textContent = text),
  );
  const then = new URL(form.dataset.then ?? "", document.baseURI);
  if (what === "delete" && !backup && done.length) then.searchParams.set("deleted", done.join(","));
  await end(then.href, problem, what === "restore" ? restored(done) : "");
  if (form.isConnected) count(form);
}

/** @param {HTMLFormElement} form */
async function undo(form) {
  const ids = boxes(form, '[name="id"]').map((e) => e.value);
  const button = find("button", form);
  const label = button.textContent;
  const { done, problem } = await each(ids, restore, (text) => (button.textContent = text));
  await end(form.dataset.then ?? "", problem, restored(done));
  button.textContent = label;
}

const restore = (/** @type {string} */ id) => `POST v1/files/${id}/restore`;
const restored = (/** @type {string[]} */ done) => words.t("restored", words.n("files", done.length));

// end shows a page after calls for several files, and what has become of them.
/** @param {string} to @param {string} problem @param {string} success */
function end(to, problem, success) {
  return problem ? show(to, problem, "bad") : show(to, success);
}

/**
 * Says how many files are chosen, and their size.
 * @param {HTMLFormElement} form
 */
function count(form) {
  const all = chosen(form),
    files = words.n("files", all.length);
  const bytes = all.reduce((sum, e) => sum + Number(e.dataset.size), 0);
  find("[data-chosen]", form).textContent = words.t("chosen", files, words.size(bytes));
  find("[data-count]", form).textContent = words.t(form.dataset.area === "backup" ? "purge" : "delete", files);
}

document.addEventListener("change", (event) => {
  const target = /** @type {HTMLInputElement} */ (event.target);
  if (target.name === "sort") target.form?.requestSubmit();
  const form = /** @type {HTMLFormElement | null} */ (target.closest("[data-bulk]"));
  if (!form) return;
  if ("all" in target.dataset) for (const e of boxes(form, '[name="id"]')) e.checked = target.checked;
  count(form);
});

document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
  const { call: calls, bulk: many, bulkUndo } = form.dataset;
  if (calls === undefined && many === undefined && bulkUndo === undefined) return;
  event.preventDefault();
  if (calls !== undefined) whileBusy(form, button, () => call(form));
  else if (bulkUndo !== undefined) whileBusy(form, button, () => undo(form));
  else if (button?.value && !document.activeElement?.matches('[type="checkbox"]')) {
    whileBusy(form, button, () => bulk(form, button.value)); // Enter in a box is not a button press
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !(event.target instanceof Element)) return;
  const open = /** @type {HTMLDetailsElement | null} */ (event.target.closest("details.reveal[open]"));
  if (!open) return;
  open.open = false;
  find("summary", open).focus();
});

document.addEventListener("click", ({ target }) => {
  for (const open of document.querySelectorAll("details.reveal[open]")) {
    if (!open.contains(/** @type {Node} */ (target))) /** @type {HTMLDetailsElement} */ (open).open = false;
  }
});

reveal(document.documentElement);
