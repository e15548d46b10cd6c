// Offers the uploads that this browser has not finished. If it has handles of the files, an upload
// is resumed with one click; otherwise the files are chosen again.
//
// Exports: cardsOf(records, ask): elements by record, each with a method chooseAgain(key), which
// asks for the files and says why. ask has get(record), which returns the session, or null once it
// has ended; goOn(record, found), which returns false if these are other files; and
// discard(record).

import { copyOf, element, find, isolated, label, warn, words } from "./dom.js";
import { foundIn, reopened } from "./drop.js";

const MOST = 3;

export async function cardsOf(records, ask) {
  const cards = new Map();
  for (const record of records.slice(0, MOST)) {
    const session = await ask.get(record);
    if (session) cards.set(record, card(record, session, ask));
  }
  return cards;
}

function card(record, { arrived = [], expires }, ask) {
  const section = copyOf("unfinished"),
    resume = find('[data-do="resume"]', section),
    again = find("label", section),
    input = find("input", again);
  const sent = arrived.reduce((sum, { size }) => sum + size, 0),
    share = record.size ? sent / record.size : 0,
    until = new Date(expires);
  find("h2", section).append(...words.parts("go-on", isolated(record.name)));
  find("p", section).append(
    ...words.parts(
      "unfinished",
      words.percent(share),
      words.of(sent, record.size),
      element("time", { dateTime: expires, title: words.exact(until), textContent: words.day(until) }),
    ),
  );
  const bar = find("progress", section);
  bar.value = Math.floor(share * 100);
  bar.ariaLabel = record.name;
  find("details p", section).textContent = words.t("discard-text", words.size(sent));

  const use = async (found) => {
    if (found.length && !(await ask.goOn(record, found))) chooseAgain("wrong.other");
  };
  const chooseAgain = (key) => {
    resume.hidden = true;
    again.hidden = false;
    if (!key) return;
    warn(section, words.parts(key, isolated(record.name)));
    input.focus();
  };
  section.chooseAgain = chooseAgain;
  resume.onclick = async () => {
    try {
      if (!(await mayRead(record.handles))) return chooseAgain("wrong.denied");
      await use(await reopened(record.handles));
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
    const found = foundIn(input.files);
    input.value = "";
    use(found);
  };
  const discard = find('[data-do="discard"]', section);
  label(discard, words.parts("discard", isolated(record.name)));
  discard.onclick = () => ask.discard(record);
  return section;
}

async function mayRead(handles) {
  const mode = { mode: "read" };
  for (const handle of handles) {
    if (
      handle.queryPermission &&
      (await handle.queryPermission(mode)) !== "granted" &&
      (await handle.requestPermission(mode)) !== "granted"
    )
      return false;
  }
  return true;
}
