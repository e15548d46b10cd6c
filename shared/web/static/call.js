// Sends a page's forms to the API, and then shows the page as it is now. A form says what it calls
// in data-call="PATCH v1/files/7", where to go afterwards in data-then, and what to say in
// data-said. fields.js reads its fields. Elements that need this module have data-js, and are
// hidden without it.

import { byId, element, find, pageAt } from "./dom.js";
import { address, collect, explain } from "./fields.js";
import { Service } from "./service.js";
import { isolate, Words } from "./words.js";

const read = (id) => JSON.parse(byId(id).textContent);
const errors = read("error-texts"), words = new Words(read("call-texts"));
const service = new Service({ base: "" });
const main = () => find("main");

function reveal(root) {
  for (const e of root.querySelectorAll("[data-js]")) e.hidden = false;
}

/** Makes a call such as "PATCH v1/files/7". */
function ask(call, body) {
  const [method, path] = call.split(" ");
  return service.call(method, path, { body });
}

/** Shows the page at an address in place of this one, and then says what has happened. */
async function show(to, text, colour) {
  const found = await pageAt(to).catch(() => null);
  if (!found) return say(colour === "bad" ? text : words.t("stale"), "bad");
  const fresh = find("main", found.page);
  if (!fresh || found.redirected) return location.assign(to);
  reveal(fresh);
  main().replaceWith(fresh);
  document.title = found.page.title;
  history.replaceState(null, "", to);
  const first = fresh.querySelector("[autofocus], .alert[tabindex]") ?? fresh;
  first.focus();
  if (first.readOnly) first.select();
  say(text, colour);
}

/** Says what has happened, at the top of what was changed, in place of any earlier message. */
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

/** Shows what is wrong beside the field that it is about, or at the end of the form. */
function complain(form, text, parameter) {
  const names = parameter.split(", ");
  const field = [...form.elements].find((e) => e.name && (names.includes(e.name) || names.some((n) => (e.dataset.parameters ?? "").split(" ").includes(n))));
  const error = element("span", { className: "error", id: `${field?.id ?? "form"}-error`, textContent: text });
  error.role = "alert";
  (field?.closest(".joined") ?? field ?? form.lastElementChild).after(error);
  if (!field) return;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", `${error.id} ${field.getAttribute("aria-describedby") ?? ""}`.trim());
  field.focus();
}

function forgive(form) {
  for (const error of form.querySelectorAll(".error")) {
    for (const field of form.querySelectorAll("[aria-invalid]")) {
      field.removeAttribute("aria-invalid");
      const others = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id !== error.id).join(" ");
      if (others) field.setAttribute("aria-describedby", others);
      else field.removeAttribute("aria-describedby");
    }
    error.remove();
  }
}

async function whileBusy(form, button, work) {
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  const buttons = [...form.elements].filter((e) => e.type === "submit");
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

async function call(form) {
  forgive(form);
  const fields = [...form.elements].filter((e) => e.name);
  const { json, wrong, name } = collect(fields.map((e) => ({ name: e.name, type: e.type, value: e.value, checked: e.checked, data: e.dataset })));
  if (wrong) return complain(form, words.t("recipients", wrong.map(isolate).join(", ")), name);
  let answer;
  try {
    answer = await ask(form.dataset.call, fields.length ? json : undefined);
  } catch (error) {
    return complain(form, explain(error, errors, words), error.parameter);
  }
  await show(address(form.dataset.then ?? location.href, answer), form.dataset.said);
}

/** Makes a call for each of several files, and reports the progress. Returns what is done, and what failed. */
async function each(ids, callOf, progress) {
  const done = [];
  let failed = 0, why = "";
  for (const [i, id] of ids.entries()) {
    progress(words.t("progress", i + 1, ids.length));
    try {
      await ask(callOf(id));
      done.push(id);
    } catch (error) {
      failed++;
      why = explain(error, errors, words);
    }
  }
  return { done, problem: failed ? words.t("partly", failed, why) : "" };
}

const chosen = (form) => [...form.querySelectorAll('[name="id"]:checked')];

async function bulk(form, what) {
  const backup = form.dataset.area === "backup", ids = chosen(form).map((e) => e.value), status = form.querySelector("[data-chosen]");
  const callOf = (id) => (what === "restore" ? `POST v1/files/${id}/restore` : `DELETE v1/files/${id}${backup ? "?area=backup" : ""}`);
  const { done, problem } = await each(ids, callOf, (text) => (status.textContent = text));
  const then = new URL(form.dataset.then, document.baseURI);
  if (what === "delete" && !backup && done.length) then.searchParams.set("deleted", done.join(","));
  await show(then.href, problem || (what === "restore" ? words.t("restored", words.n("files", done.length)) : ""), problem ? "bad" : "good");
  if (form.isConnected) count(form);
}

async function undo(form) {
  const ids = [...form.querySelectorAll('[name="id"]')].map((e) => e.value), button = form.querySelector("button"), label = button.textContent;
  const { done, problem } = await each(ids, (id) => `POST v1/files/${id}/restore`, (text) => (button.textContent = text));
  await show(form.dataset.then, problem || words.t("restored", words.n("files", done.length)), problem ? "bad" : "good");
  button.textContent = label;
}

/** Says how many files are chosen, and their size. */
function count(form) {
  const all = chosen(form), files = words.n("files", all.length);
  const bytes = all.reduce((sum, e) => sum + Number(e.dataset.size), 0);
  form.querySelector("[data-chosen]").textContent = words.t("chosen", files, words.size(bytes));
  form.querySelector("[data-count]").textContent = words.t(form.dataset.area === "backup" ? "purge" : "delete", files);
}

document.addEventListener("change", ({ target }) => {
  if (target.name === "sort") target.form.requestSubmit();
  const form = target.closest?.("[data-bulk]");
  if (!form) return;
  if ("all" in target.dataset) for (const e of form.querySelectorAll('[name="id"]')) e.checked = target.checked;
  count(form);
});

document.addEventListener("submit", (event) => {
  const form = event.target, { call: calls, bulk: many, bulkUndo } = form.dataset;
  if (calls === undefined && many === undefined && bulkUndo === undefined) return;
  event.preventDefault();
  if (calls !== undefined) whileBusy(form, event.submitter, () => call(form));
  else if (bulkUndo !== undefined) whileBusy(form, event.submitter, () => undo(form));
  else if (event.submitter?.value && document.activeElement?.type !== "checkbox") { // Enter in a box is not a button press
    whileBusy(form, event.submitter, () => bulk(form, event.submitter.value));
  }
});

document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && event.target.closest?.("details.reveal[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

document.addEventListener("click", ({ target }) => {
  for (const open of document.querySelectorAll("details.reveal[open]")) if (!open.contains(target)) open.open = false;
});

reveal(document);
