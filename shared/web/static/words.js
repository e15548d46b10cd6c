// Says things in the language of the page, as words.go does, and describes an upload.
//
//   const words = new Words(JSON.parse(document.getElementById('texts').textContent));
//   words.t('send', words.n('files', 3), words.size(1.2e9));   // Send 3 files, 1.2 GB
//   const { percent, line, held, say } = describe(upload.snapshot(), words);
//
// Exports: isolate(name); Words with t(key, ...args), parts(key, ...args), n(key, count), has(key), size(bytes),
// of(part, whole), span(seconds), percent(share), list(phrases), day(date), exact(date); describe(snapshot, words);
// Crier with say(snapshot).

/** @import { Snapshot } from "./upload.js" */

const PREFIXES = ["", "k", "M", "G", "T", "P"];

/** Returns a name that does not change the direction of the text around it. */
export const isolate = (/** @type {string} */ name) => `\u2068${name}\u2069`;

/** The texts of a page. `texts` contains the language as `lang`, and the letter for bytes as `unit`. */
export class Words {
  #texts;
  #plural;

  /** @param {{ lang: string, unit: string, [key: string]: any }} texts */
  constructor(texts) {
    this.#texts = texts;
    this.#plural = new Intl.PluralRules(texts.lang);
  }

  /** @param {string} key */
  has(key) {
    return key in this.#texts;
  }

  /**
   * Returns a text. Its arguments stand where fmt.Sprintf puts them: %s in their order, or %[2]s.
   * @param {string} key @param {any[]} args
   */
  t(key, ...args) {
    return this.parts(key, ...args).join("");
  }

  /**
   * Returns the pieces of a text, with its arguments, which may be elements, among them.
   * @param {string} key @param {any[]} args
   * @returns {(string | Node)[]}
   */
  parts(key, ...args) {
    let next = 0;
    return this.#texts[key]
      .split(/%(\[\d\])?s/)
      .flatMap((/** @type {string} */ piece, /** @type {number} */ i, /** @type {any[]} */ all) => {
        if (i % 2) return [];
        return i + 1 < all.length ? [piece, args[all[i + 1] ? all[i + 1][1] - 1 : next++]] : [piece];
      });
  }

  /**
   * Writes a number with the things that a key names.
   * @param {string} key @param {number} count
   */
  n(key, count) {
    const things = [this.#texts[key]].flat(); // a language may have one word for both
    return `${this.#number(count)}\u00a0${this.#plural.select(count) === "one" ? things[0] : things.at(-1)}`;
  }

  /** @param {number} value */
  #number(value, decimals = 0) {
    return new Intl.NumberFormat(this.#texts.lang, { maximumFractionDigits: decimals }).format(value);
  }

  /** @param {string} number @param {number} power */
  #with(number, power) {
    return `${number}\u00a0${PREFIXES[power]}${this.#texts.unit}`;
  }

  /**
   * Writes a number of bytes with at most three digits.
   * @param {number} bytes
   */
  size(bytes) {
    let value = bytes,
      power = 0;
    while (value >= 999.5 && power < PREFIXES.length - 1) ((value /= 1000), power++);
    return this.#with(this.#number(value, value < 100 ? 1 : 0), power);
  }

  /**
   * Writes two numbers of bytes in one unit, as 412 of 1,200 MB.
   * @param {number} part @param {number} whole
   */
  of(part, whole) {
    let unit = 1,
      power = 0;
    while (whole / unit >= 2000 && power < PREFIXES.length - 1) ((unit *= 1000), power++);
    const decimals = power > 0 && whole / unit < 100 ? 1 : 0;
    return this.t(
      "of",
      this.#number(Math.floor((part / unit) * 10 ** decimals) / 10 ** decimals, decimals),
      this.#with(this.#number(whole / unit, decimals), power),
    );
  }

  /**
   * Writes a time span.
   * @param {number} seconds
   */
  span(seconds) {
    const all = Math.max(1, Math.ceil(seconds));
    if (all < 60) return this.t("seconds", this.#number(all));
    if (all < 3600) return this.t("minutes", this.#number(Math.ceil(all / 60)));
    return this.t("hours", this.#number(Math.ceil(all / 3600)));
  }

  /** @param {number} share */
  percent(share) {
    return new Intl.NumberFormat(this.#texts.lang, { style: "percent" }).format(Math.floor(share * 100) / 100);
  }

  /**
   * Joins phrases into a sentence without its full stop.
   * @param {string[]} phrases
   */
  list(phrases) {
    const text = phrases.join(", ");
    return text.charAt(0).toLocaleUpperCase(this.#texts.lang) + text.slice(1);
  }

  /**
   * Writes the weekday of a date; exact() writes all of it.
   * @param {Date} date
   */
  day(date) {
    return new Intl.DateTimeFormat(this.#texts.lang, { weekday: "long" }).format(date);
  }

  /** @param {Date} date */
  exact(date) {
    return new Intl.DateTimeFormat(this.#texts.lang, { dateStyle: "long", timeStyle: "short" }).format(date);
  }
}

/**
 * Describes an upload: `percent`, the `line` below the bar and one `more`, whether it is `held` or
 * `busy`, and whether it can pause ('pause'), resume ('resume') or neither ('').
 * @param {Snapshot} snapshot @param {Words} words
 */
export function describe({ state, sent, total, rate, left }, words) {
  const share = total ? sent / total : state === "completing" || state === "done" ? 1 : 0;
  const said = {
    share,
    percent: words.percent(share),
    line: words.of(sent, total),
    more: "",
    held: false,
    busy: false,
    can: "pause",
  };
  switch (state) {
    case "hashing":
      return { ...said, line: words.t("begins"), busy: true };
    case "paused":
      return { ...said, line: words.list([said.line, words.t("paused")]), held: true, can: "resume" };
    case "offline":
      return { ...said, line: words.t("offline"), more: said.line, held: true };
    case "completing":
    case "done":
      return { ...said, line: words.t("checks"), busy: true, can: "" };
    case "failed":
      return { ...said, held: true, can: "" };
  }
  const phrases = [said.line];
  if (rate > 0) phrases.push(words.t("rate", words.size(rate)));
  if (left !== null && left < 100 * 3600) phrases.push(words.t("left", words.span(left)));
  return { ...said, line: words.list(phrases) };
}

/** Decides what is read out about an upload: each change of its state, and each tenth. */
export class Crier {
  #words;
  #state = "";
  #tenth = 0;

  /** @param {Words} words */
  constructor(words) {
    this.#words = words;
  }

  /**
   * Returns what to read out now, or an empty text.
   * @param {Snapshot} snapshot
   */
  say(snapshot) {
    const { share, percent, line } = describe(snapshot, this.#words),
      tenth = Math.floor(share * 10);
    const changed = snapshot.state !== this.#state,
      further = tenth > this.#tenth;
    this.#state = snapshot.state;
    this.#tenth = Math.max(tenth, this.#tenth);
    if (snapshot.state === "failed") return ""; // the error is read out
    if (changed && snapshot.state !== "sending") return line;
    return further && snapshot.state === "sending" ? percent : "";
  }
}
