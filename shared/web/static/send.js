// The sending page, and the page of a request. #stage shows one of three states: nothing is chosen,
// with the unfinished uploads; what is chosen; or what is being sent. What was sent has a page of its own.

import { Choice } from "./choice.js";
import { byId, copyOf, element, find, isolated, label, warn, words } from "./dom.js";
import { canPick, dropped, foundIn, pick } from "./drop.js";
import { Form } from "./form.js";
import { Store, guestScope } from "./store.js";
import { cardsOf } from "./unfinished.js";
import { Crier, describe, isolate } from "./words.js";

const MOST_ROWS = 200; // in the list
const MOST_PICTURES = 40; // shown in the list
const LARGEST_PICTURE = 10e6; // bytes

const stage = byId("stage"),
  heading = byId("heading"),
  said = byId("said");
const { token, user, back, room } = stage.dataset,
  isGuest = token !== undefined;
const title = document.title,
  asked = [...heading.childNodes];
const store = new Store();
const loading = Promise.all([import("./upload.js"), import("./bundle.js")]).then(([upload, bundle]) => ({
  ...upload,
  ...bundle,
}));
loading.catch(() => {}); // the code that needs it reports the failure

let choice = new Choice();
let scope = stage.dataset.scope; // of unfinished uploads
let cards = new Map(); // of the unfinished uploads, by record
let upload = null; // the upload that is not over yet
let resumed; // the record whose session it resumes, if any
let options = {}; // of the upload

// What is shown

const start = byId("start"),
  chosen = copyOf("chosen"),
  [progress, list] = byId("sending").content.cloneNode(true).children;
const place = find(".drop", start),
  placeTitle = find(".drop-title", place),
  dropHere = placeTitle.textContent;
const form = new Form(chosen, stage.dataset),
  primary = find(".action .primary", chosen);

function show(...parts) {
  const sending = parts.includes(progress);
  stage.replaceChildren(...parts);
  for (const part of document.querySelectorAll("[data-empty]")) part.hidden = !parts.includes(start);
  for (const part of document.querySelectorAll("[data-about]")) part.hidden = sending;
  place.classList.toggle("low", cards.size > 0 || "low" in place.dataset);
  if (sending) return;
  heading.replaceChildren(...asked);
  document.title = title;
}

function say(text) {
  if (text) said.textContent = text;
}

const put = (where, text) => {
  if (where.textContent !== text) where.textContent = text; // or it would be redrawn
};

const amount = () => words.list([words.n("files", choice.count), words.size(choice.size)]);
const what = () => (choice.single ? isolated(shortened(choice.single.name)) : words.n("files", choice.count));

const rows = new Map(); // by item

function rowOf(item, n) {
  const row = copyOf("row"),
    { file } = item.entries[0],
    name = find(".name", row),
    [head, tail] = halves(item.name);
  name.append(element("span", { textContent: head }));
  if (tail) {
    name.append(element("span", { textContent: tail }));
    name.title = item.name;
  }
  const use = find("use", row),
    kind = find(".kind", row),
    icon = kind.firstElementChild;
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, `#${item.folder ? "folder" : iconOf(file)}`));
  if (!item.folder && n < MOST_PICTURES && file.size < LARGEST_PICTURE && /^image\/(?!svg)/.test(file.type)) {
    const picture = element("img", { alt: "", width: 40, height: 40, src: URL.createObjectURL(file) });
    picture.onload = () => URL.revokeObjectURL(picture.src);
    picture.onerror = () => kind.replaceChildren(icon); // it is not a picture
    kind.replaceChildren(picture);
  }
  const button = find("button", row);
  button.ariaLabel = words.t("remove", isolate(item.name));
  button.onclick = () => {
    const at = choice.items.indexOf(item);
    choice.remove(item);
    edit();
    const next = rows.get(choice.items[at] ?? choice.items.at(-1)); // so that the focus is not lost with the button
    if (next) find("button", next).focus();
  };
  return row;
}

function iconOf({ type, name }) {
  const general = { image: "image", video: "film", audio: "sound", text: "text" }[type.split("/")[0]];
  return (
    general ??
    (/\.(zip|gz|tgz|bz2|xz|zst|7z|rar|tar)$/i.test(name) ? "bundle" : /pdf|document|json/.test(type) ? "text" : "file")
  );
}

// halves cuts a long name in two, so that its end stays visible where there is too little room.
function halves(name) {
  const all = [...name], [ext] = /(\.[^.]{0,7})?$/.exec(name);
  let at = all.length - 4 - [...ext].length;
  while (at > 0 && (/^[\p{M}\u200d]/u.test(all[at]) || all[at - 1] === "\u200d")) at--;
  if (all.length <= 16 || at <= 0 || /[\u0590-\u08ff]/.test(name)) return [name];
  return [all.slice(0, at).join(""), all.slice(at).join("")];
}

function shortened(name) {
  const all = [...name];
  return all.length > 40 ? `${all.slice(0, 26).join("")}…${all.slice(-12).join("")}` : name;
}

// fill shows the choice in a list, with buttons or with the progress of each item.
function fill(within, sending) {
  const { items } = choice,
    some = items.slice(0, MOST_ROWS);
  for (const item of rows.keys()) if (!some.includes(item)) rows.delete(item);
  some.forEach((item, n) => rows.has(item) || rows.set(item, rowOf(item, n)));
  for (const [item, row] of rows) {
    const size = words.size(item.size);
    put(find(".meta", row), item.folder ? words.list([words.n("files", item.count), size]) : size);
    find("button", row).hidden = sending;
    find(".state", row).hidden = !sending;
  }
  const more = items.length - some.length;
  find(".rows", within).replaceChildren(
    ...some.map((item) => rows.get(item)),
    ...(more ? [element("li", { textContent: words.t("more", words.n("files", more)) })] : []),
  );
}

// Choosing

/** Adds files to the choice, unless something is being sent. */
async function take(finding) {
  const found = await Promise.resolve(finding).catch(() => null);
  if (upload) return refuseMore();
  warn(start);
  if (!found) return warn(chosen.isConnected ? chosen : start, words.t("wrong.unreadable"));
  if (!found.length) return;
  choice.add(found);
  for (const record of cards.keys()) if (await goOn(record)) return;
  edit();
  primary.focus({ preventScroll: true });
}

function refuseMore() {
  const later = find("[data-later]", progress);
  if (!later.hidden) return;
  later.hidden = false;
  say(later.textContent);
}

// edit shows what is chosen, and the form around it.
function edit() {
  if (!choice.items.length) {
    show(...cards.values(), start);
    return find("input", start).focus();
  }
  fill(chosen, false);
  find(".head b", chosen).textContent = amount();
  label(primary, words.parts("send", what(), words.size(choice.size)));
  const bundle = byId("bundle") ?? find("#bundle", chosen);
  if (bundle) {
    find("[data-bundle]", chosen).hidden = Boolean(choice.single);
    if (bundle.value === bundle.defaultValue)
      bundle.value = bundle.defaultValue = choice.single ? "" : choice.name(words);
  }
  warn(
    chosen,
    choice.size > Number(room ?? Infinity) ? words.t("room", words.size(choice.size), words.size(Number(room))) : "",
  );
  if (!chosen.isConnected) show(chosen);
}

for (const input of [...start.querySelectorAll("input"), find(".head input", chosen)]) {
  const folder = input.hasAttribute("webkitdirectory"),
    taken = () => {
      const found = foundIn(input.files);
      input.value = ""; // so that the same file can be chosen again
      take(found);
    };
  input.addEventListener("change", taken);
  input.addEventListener("click", (event) => {
    if (!canPick()) return;
    event.preventDefault();
    take(pick(folder));
  });
  if (folder && "webkitdirectory" in input) input.closest("label").hidden = false;
  if (input.files.length) taken(); // chosen before this script was loaded
}

let over = 0; // elements that something is dragged over
const hover = (change) => {
  if (upload) return refuseMore();
  over = change && Math.max(0, over + change);
  place.classList.toggle("over", over > 0);
  put(placeTitle, over > 0 ? words.t("let-go") : dropHere);
};
const dragged = (act) => (event) => {
  if ([...(event.dataTransfer?.types ?? [])].includes("Files")) act(event);
};
addEventListener(
  "dragenter",
  dragged(() => hover(1)),
);
addEventListener(
  "dragleave",
  dragged(() => hover(-1)),
);
addEventListener(
  "dragover",
  dragged((event) => event.preventDefault()),
); // otherwise the browser would open it
addEventListener(
  "drop",
  dragged((event) => {
    event.preventDefault();
    hover(0);
    take(dropped(event.dataTransfer));
  }),
);
addEventListener("paste", ({ clipboardData }) => {
  if (clipboardData?.files.length) take(foundIn(clipboardData.files));
});

// Sending

chosen.addEventListener("submit", (event) => {
  event.preventDefault();
  const read = form.read();
  if (read) send({ ...read, lang: document.documentElement.lang });
});

/** Sends what is chosen, in a new session or in that of a record. */
async function send(how, resume) {
  if (upload || primary.ariaBusy === "true") return;
  primary.ariaBusy = "true";
  options = how;
  resumed = resume;
  try {
    const engine = await loading;
    let name = resume?.name ?? choice.single?.name;
    name ??= find("#bundle", chosen)?.value.trim() || choice.name(words);
    if (!resume && !choice.single && !/\.zip$/i.test(name)) name += ".zip";
    const source = choice.source(engine, name);
    const guest = isGuest ? await engine.join(token) : undefined;
    upload = new engine.Upload(source, { ...options, guest, store, scope, handles: choice.handles, resume });
    await run(Boolean(resume));
  } catch (error) {
    refuse(error);
  } finally {
    primary.ariaBusy = "false";
  }
}

// run starts the upload, or restarts it.
async function run(begun) {
  const crier = new Crier(words),
    current = upload;
  if (begun) begin();
  upload.onchange = (snapshot) => {
    if (upload !== current) return;
    if ((snapshot.id || snapshot.state === "offline") && snapshot.state !== "failed" && !progress.isConnected) begin();
    if (progress.isConnected) draw(snapshot);
    say(crier.say(snapshot));
  };
  const { id } = await upload.start();
  upload = null; // the visitor may leave now
  location.replace(
    isGuest ? `${back}&sent=1` : `send?${new URLSearchParams({ sent: id, ...(options.d && { d: options.d }) })}`,
  );
}

function begin() {
  fill(list, true);
  find("h2", list).textContent = amount();
  heading.replaceChildren(
    ...(isGuest ? words.parts("sending-to", what(), isolated(user)) : words.parts("sending", what())),
  );
  label(find('[data-do="cancel"]', progress), words.parts("cancel", what()));
  find("details", progress).open = false;
  find("[data-later]", progress).hidden = true;
  warn(progress);
  show(progress, list);
  draw(upload.snapshot());
  heading.focus();
}

function draw(snapshot) {
  const now = describe(snapshot, words),
    failed = snapshot.state === "failed",
    changed = snapshot.error?.code === "changed";
  const bar = find("progress", progress),
    [, line, more] = progress.querySelectorAll("p");
  put(find(".percent", progress), now.percent);
  bar.value = Math.floor(now.share * 100);
  bar.classList.toggle("held", now.held);
  line.className = now.busy ? "busy" : "line num";
  find(".warn", line).hidden = snapshot.state !== "offline";
  put(line.lastElementChild, now.line);
  put(more, now.more);
  more.hidden = !now.more;
  const can = {
    pause: now.can === "pause",
    resume: now.can === "resume",
    again: changed,
    leave: changed && !choice.single,
    retry: failed && !changed,
  };
  for (const name in can) find(`[data-do="${name}"]`, progress).hidden = !can[name];
  find("details", progress).hidden = snapshot.state === "completing" || snapshot.state === "done";
  for (const [item, share] of choice.shares(now.share)) {
    const state = rows.has(item) && find(".state", rows.get(item));
    if (!state) continue;
    state.classList.toggle("good", share === 1);
    put(state, share === 1 ? words.t("done") : share > 0 ? words.percent(share) : words.t("waits"));
  }
  document.title = `${now.percent} – ${title}`;
}

// refuse says why nothing is sent: beside the field that caused it, or else above the form or below the bar.
function refuse({ name, code, status, parameter, path }) {
  if (code === "cancelled") return;
  if (code === "password" || (isGuest && (status === 401 || status === 403))) {
    upload = null; // or the browser would ask whether to leave
    return location.reload(); // the reloaded page says why
  }
  if (code === "other" && resumed) return chooseOthers();
  const ended = code === "gone" || status === 410; // trying again does not help
  const keys = [
    ended && "gone",
    name === "BundleError" && (path ? "name" : "bundle"),
    parameter?.includes(",") ? "many" : parameter,
    code,
    status,
    "internal",
  ];
  const key = keys.find((one) => one && words.has(`wrong.${one}`));
  const text = words.parts(`wrong.${key}`, isolated(path || choice.single?.name || ""));
  if (upload && !ended && progress.isConnected && upload.snapshot().id) {
    draw(upload.snapshot());
    return warn(progress, text);
  }
  if (ended) cards.delete(resumed);
  upload = null;
  edit();
  if (!form.blame(parameter, text)) warn(chosen, text);
}

// chooseOthers goes back to an unfinished upload whose files are not those chosen. What has arrived stays.
function chooseOthers() {
  upload = null;
  choice = new Choice();
  edit();
  cards.get(resumed).chooseAgain("wrong.other");
}

// stop ends the upload. It returns false if the upload was already complete.
async function stop() {
  if (!(await upload.cancel())) return false;
  upload = null;
  cards.delete(resumed);
  return true;
}

// anew sends the choice again, after a change to the file that is no longer the same.
async function anew(change) {
  const { path } = upload.snapshot().error;
  if (!(await stop())) return;
  change(path);
  rows.clear(); // a picture may have changed
  edit();
  if (resumed?.protected) warn(chosen, words.t("wrong.gone")); // its password is not known here
  else if (choice.items.length) send(options);
}

const buttons = {
  pause: () => upload.pause(),
  resume: () => upload.resume(),
  retry: () => {
    warn(progress);
    run().catch(refuse);
  },
  leave: () => anew((path) => choice.without(path)),
  cancel: async () => {
    if (!(await stop())) return;
    edit();
    primary.focus({ preventScroll: true });
    say(words.t("cancelled"));
  },
};
progress.addEventListener("click", ({ target }) => upload && buttons[target.closest("[data-do]")?.dataset.do]?.());
find('[data-do="again"] input', progress).addEventListener("change", ({ target }) => {
  const [file] = target.files;
  target.value = "";
  if (file) anew((path) => choice.replace(path, file));
});

addEventListener("beforeunload", (event) => {
  if (upload) event.preventDefault();
});

// What is unfinished

// goOn resumes an unfinished upload, if what is chosen is exactly what it sends.
async function goOn(record, found) {
  const { Bundle } = await loading,
    now = found ? new Choice() : choice;
  if (found) now.add(found);
  if (!now.fits(record, Bundle)) return false;
  choice = now;
  send(record.options, record);
  return true;
}

/** Returns the session of a record, or null once it has ended. */
async function sessionOf({ id }) {
  const headers = { Accept: "application/json", ...(isGuest && { Authorization: `Bearer ${token}` }) };
  const answer = await fetch(`v1/uploads/${encodeURIComponent(id)}`, { headers, cache: "no-store" }).catch(() => null);
  const session = answer?.ok ? await answer.json() : null;
  if (session?.state === "open") return session;
  if (answer?.status === 404 || session) await store.delete(id);
  return null;
}

// recordOf returns a record of an upload that another program or browser began, or null if it
// cannot be resumed here. Its options are not known here, so no other session may be begun for it.
async function recordOf(id) {
  const session = await sessionOf({ id });
  if (!session || session.from || session.request || session.length === undefined) return null;
  const { name, length, type, d, arrived } = session,
    first = arrived.find(({ number }) => number === 1)?.crc64nvme;
  return { id, scope, name, size: length, type, first, protected: true, options: { d } };
}

async function discard(record) {
  const { Upload, join } = await loading;
  const source = { name: record.name, length: record.size };
  await new Upload(source, { resume: record, store, guest: isGuest ? await join(token) : undefined }).cancel();
  cards.delete(record);
  edit();
}

if (isGuest) scope = await guestScope(token);
const records = scope ? await store.list(scope) : [],
  [, linked] = location.hash.match(/^#upload=(.+)/) ?? [], // a link from the files page
  wanted = linked && (records.find(({ id }) => id === linked) ?? (await recordOf(linked)));
if (wanted) records.splice(0, records.length, wanted, ...records.filter((record) => record !== wanted));
cards = await cardsOf(records, { get: sessionOf, goOn, discard });
if (linked && !cards.has(wanted)) warn(start, words.t("wrong.ended"));
if (cards.size && start.isConnected) show(...cards.values(), start);
