import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Bundle } from "../static/bundle.js";
import { Choice } from "../static/choice.js";
import { people } from "../static/people.js";
import { bundleSource, fileSource } from "../static/upload.js";
import { Crier, Words, describe } from "../static/words.js";

const own = JSON.parse(readFileSync(new URL("../../notify/texts/en/pages.json", import.meta.url)));
const texts = Object.fromEntries(
  Object.entries(own).flatMap(([key, text]) => (key.startsWith("send.js.") ? [[key.slice(8), text]] : [])),
);
const words = new Words({ ...texts, lang: "en", unit: "B" });
const plain = (text) => text.replace(/[\u00a0\u202f]/g, " ");
const file = (name, size, lastModified = 1) => new File([new Uint8Array(size)], name, { lastModified });
const found = (path, size, handle) => ({ path, file: size < 0 ? null : file(path.split("/").at(-1), size), handle });

test("sizes, numbers and times are written as people write them", () => {
  for (const [bytes, want] of [
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1 kB"],
    [4.14e6, "4.1 MB"],
    [99.96e6, "100 MB"],
    [412e6, "412 MB"],
    [999.6e6, "1 GB"],
    [1.2e9, "1.2 GB"],
  ]) {
    assert.equal(plain(words.size(bytes)), want);
  }
  for (const [part, whole, want] of [
    [412e6, 1.2e9, "412 of 1,200 MB"],
    [4.19e6, 9.5e6, "4.1 of 9.5 MB"],
    [3, 7, "3 of 7 B"],
    [0, 20e9, "0 of 20 GB"],
  ]) {
    assert.equal(plain(words.of(part, whole)), want);
  }
  for (const [seconds, want] of [
    [0, "1 s"],
    [20.2, "21 s"],
    [61, "2 min"],
    [3601, "2 h"],
  ])
    assert.equal(words.span(seconds), want);
  assert.deepEqual(
    [1, 2].map((n) => plain(words.n("files", n))),
    ["1 file", "2 files"],
  );
  const german = new Words({ lang: "de", unit: "B", of: "%[2]s, davon %[1]s" });
  assert.equal(plain(german.of(412e6, 1.2e9)), "1.200 MB, davon 412");
  assert.deepEqual([plain(german.size(4.14e6)), plain(german.percent(0.349))], ["4,1 MB", "34 %"]);
  assert.deepEqual(words.parts("room", 1, 2), [
    "There is not enough room. This needs ",
    1,
    ", and ",
    2,
    " are left. Remove some files.",
  ]);
});

test("an upload is described by its state", () => {
  const at = (state, more) => describe({ state, sent: 412e6, total: 1.2e9, rate: 38e6, left: 20.7, ...more }, words);
  for (const [state, line, rest] of [
    ["hashing", "The files are being read.", { busy: true, can: "pause" }],
    ["sending", "412 of 1,200 MB, 38 MB/s, 21 s left", { held: false, can: "pause" }],
    ["paused", "412 of 1,200 MB, paused", { held: true, can: "resume" }],
    ["offline", "No connection, goes on by itself", { held: true, more: "412 of 1,200 MB", can: "pause" }],
    ["completing", "All bytes have arrived. They are being checked.", { busy: true, can: "" }],
    ["failed", "412 of 1,200 MB", { held: true, can: "" }],
  ]) {
    const said = at(state);
    assert.equal(plain(said.line), line);
    assert.deepEqual({ ...said, more: plain(said.more) }, { ...said, ...rest });
    assert.equal(said.percent, "34%");
  }
  assert.equal(plain(at("sending", { rate: 0, left: null }).line), "412 of 1,200 MB");
  assert.equal(describe({ state: "hashing", sent: 0, total: 0 }, words).percent, "0%");
});

test("each change of the state and each tenth is read out, once", () => {
  const crier = new Crier(words),
    say = (state, sent) => plain(crier.say({ state, sent, total: 100, rate: 1, left: 1 }));
  const steps = [
    ["hashing", 0],
    ["sending", 1],
    ["sending", 9],
    ["sending", 12],
    ["sending", 15],
    ["offline", 15],
    ["offline", 15],
    ["sending", 14],
    ["sending", 31],
    ["failed", 31],
    ["completing", 100],
  ];
  assert.deepEqual(
    steps.map((step) => say(...step)),
    [
      "The files are being read.",
      "",
      "",
      "12%",
      "",
      "No connection, goes on by itself",
      "",
      "",
      "31%",
      "",
      "All bytes have arrived. They are being checked.",
    ],
  );
});

test("recipients are read out of what people type and paste", () => {
  const read = (text, region) => people(text, region).map(({ kind, value }) => `${kind}:${value}`);
  for (const [text, want] of [
    ["bob@example.com", ["m:bob@example.com"]],
    [
      " bob@example.com,carla@example.com;\n\tdana@example.com ",
      ["m:bob@example.com", "m:carla@example.com", "m:dana@example.com"],
    ],
    ["bob@example.com carla@example.com", ["m:bob@example.com", "m:carla@example.com"]],
    ['"Bob, Jr" <bob@example.com>', ["m:bob@example.com"]],
    ["Bob Smith <bob@example.com>, Carla carla@example.com", ["m:bob@example.com", "m:carla@example.com"]],
    ["bob@example.com, BOB@example.com", ["m:bob@example.com"]],
    ["+39 340 123-45.67", ["c:+393401234567"]],
    ["0039 340 1234567", ["c:+393401234567"]],
    ["+39 340 1234567 +44 (0)7700/900123", ["c:+393401234567", "c:+4407700900123"]],
    ["bob@example.com +39 340 1234567", ["m:bob@example.com", "c:+393401234567"]],
    ["340 1234567", [":340 1234567"]],
    ["carla.example.com", [":carla.example.com"]],
    ["bob@example", [":bob@example"]],
    ["  ,;\n", []],
  ]) {
    assert.deepEqual(read(text), want, text);
  }
  assert.deepEqual(read("340 1234567, 0044 7700 900123", true), ["c:3401234567", "c:00447700900123"]);
});

test("one file is sent as it is, all else as a bundle", () => {
  const choice = new Choice(),
    engine = { fileSource, bundleSource, Bundle };
  choice.add([found("film.mp4", 5, "a handle")]);
  assert.deepEqual(
    [choice.name(words), choice.source(engine, "x").bundle, choice.handles],
    ["film.mp4", false, ["a handle"]],
  );
  choice.add([found("trip/a.txt", 1), found("trip/sub/b.txt", 2), found("trip/empty/", -1)]);
  assert.deepEqual(
    [choice.name(words), choice.count, choice.size, choice.handles],
    ["film and 1 more.zip", 3, 8, undefined],
  );
  const source = choice.source(engine, "x.zip");
  assert.deepEqual(source.entries, ["film.mp4", "trip/a.txt", "trip/empty/", "trip/sub/b.txt"]);
  assert.deepEqual(
    choice.items.map(({ name, folder, count, size }) => [name, folder, count, size]),
    [
      ["film.mp4", false, 1, 5],
      ["trip", true, 2, 3],
    ],
  );
  choice.remove(choice.items[0]);
  assert.deepEqual([choice.name(words), choice.single], ["trip.zip", null]);
});

test("the same again is left out, and another file of a name gets another name", () => {
  const choice = new Choice();
  choice.add([found("a.txt", 1, "first"), found("trip/a.txt", 1)]);
  choice.add([
    found("a.txt", 1, "first"),
    found("a.txt", 2, "second"),
    found("a.txt", 3),
    found("trip/a.txt", 1),
    found("trip/a.txt", 2),
    found(".profile", 1),
    found(".profile", 2),
  ]);
  assert.deepEqual(
    choice.entries.map(({ path }) => path),
    [".profile", ".profile (2)", "a (2).txt", "a (3).txt", "a.txt", "trip/a (2).txt", "trip/a.txt"],
  );
  assert.equal(choice.handles, undefined);
});

test("a changed file is replaced or left out", () => {
  const choice = new Choice();
  choice.add([found("a.txt", 1, "a"), found("trip/b.txt", 2, "b"), found("trip/c.txt", 3, "b")]);
  choice.replace("trip/b.txt", file("other", 20));
  assert.deepEqual([choice.size, choice.handles], [24, undefined]);
  choice.without("trip/b.txt");
  choice.without("a.txt");
  assert.deepEqual(
    choice.items.map(({ name, size }) => [name, size]),
    [["trip", 3]],
  );
  const one = new Choice();
  one.add([found("a.txt", 1)]);
  one.replace("", file("a.txt", 7));
  assert.equal(one.size, 7);
});

test("an unfinished upload is recognised by its names and sizes", () => {
  const of = (...all) => {
    const choice = new Choice();
    choice.add(all.map(([path, size]) => found(path, size)));
    return choice;
  };
  const single = { name: "a.txt", size: 3, bundle: false };
  assert.ok(of(["a.txt", 3]).fits(single, Bundle));
  for (const other of [of(["a.txt", 4]), of(["b.txt", 3]), of(["a.txt", 3], ["b.txt", 1]), of(["a/a.txt", 3])])
    assert.ok(!other.fits(single, Bundle));
  const both = of(["a.txt", 3], ["t/b.txt", 4]),
    entries = ["a.txt", "t/b.txt"],
    bundle = { name: "x.zip", size: new Bundle(both.entries).length, bundle: true, entries };
  assert.ok(of(["t/b.txt", 4], ["a.txt", 3]).fits(bundle, Bundle));
  for (const other of [of(["a.txt", 3]), of(["a.txt", 3], ["t/c.txt", 4]), of(["a.txt", 3], ["t/b.txt", 5])])
    assert.ok(!other.fits(bundle, Bundle));
});

test("an upload that began elsewhere is recognised by its name and size, whether or not it is a bundle", () => {
  const of = (...all) => {
    const choice = new Choice();
    choice.add(all.map(([path, size]) => found(path, size)));
    return choice;
  };
  const both = of(["t/a.txt", 3], ["t/b.txt", 4]);
  assert.ok(of(["cafe\u0301.zip", 3]).fits({ name: "caf\u00e9.zip", size: 3 }, Bundle));
  assert.ok(both.fits({ name: "t.zip", size: new Bundle(both.entries).length }, Bundle));
  assert.ok(!both.fits({ name: "t.zip", size: 7 }, Bundle));
  assert.ok(!of(["t/a.txt", 3], ["t\\b.txt", 4]).fits({ name: "t.zip", size: 7 }, Bundle));
  const engine = { fileSource, bundleSource, Bundle };
  assert.equal(of(["cafe\u0301.zip", 3]).source(engine, "caf\u00e9.zip").name, "caf\u00e9.zip");
});

test("the list shows which files are done", () => {
  const choice = new Choice();
  choice.add([found("b", 50), found("a", 50), found("c", 0)]);
  const at = (share) => [...choice.shares(share)].map(([{ name }, of]) => name + of);
  assert.deepEqual(at(0), ["a0", "b0", "c0"]);
  assert.deepEqual(at(0.75), ["a1", "b0.5", "c0"]);
  assert.deepEqual(at(1), ["a1", "b1", "c1"]);
});
