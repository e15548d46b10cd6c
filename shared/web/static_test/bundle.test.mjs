import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { Bundle, BundleError, checkPath } from "../static/bundle.js";
import { Choice } from "../static/choice.js";
import { Crc64, text64 } from "../static/crc.js";
import { foundIn } from "../static/drop.js";
import { ChangedError, Pool } from "../static/worker.js";
import { bytesOf, cases, fileOf, hex } from "./cases.mjs";

const golden = cases("bundle/testdata/bundles.json");
const pool = new Pool({ Worker: null });

// entries returns those of a case, with files if its seeds say what is in them.
function entries({ entries = [], count = 0, prefix = "" }, withFiles = true) {
  const all = [...entries];
  for (let i = 0; i < count; i++) all.push({ path: `${prefix}${i}.txt`, length: i % 3, seed: i, modified: 1e12 });
  return all.map(({ path, length, seed = 0, modified, executable }) => {
    const file = withFiles && length > 0 ? new Blob([bytesOf(seed, length)]) : undefined;
    return { path, length, file, modified, executable };
  });
}

for (const c of golden.bundles) {
  test(`a bundle has the bytes that Go makes: ${c.name}`, async () => {
    const bundle = new Bundle(entries(c)),
      parts = bundle.cut(c.part, pool);
    assert.deepEqual([bundle.length, bundle.directory], [c.length, c.directory]);
    if (c.headers)
      assert.deepEqual(
        bundle.entries.map(({ header }) => header),
        c.headers,
      );
    if (c.offsets)
      assert.deepEqual(
        bundle.entries.map(({ offset }) => offset),
        c.offsets,
      );
    assert.deepEqual(parts.order(), c.order);
    const blobs = [],
      sums = [];
    for (const number of parts.order()) {
      sums[number - 1] = text64(await parts.sum(number));
      blobs[number - 1] = await parts.blob(number);
    }
    assert.deepEqual(sums, c.sums);
    const archive = Buffer.from(await new Blob(blobs).arrayBuffer());
    assert.equal(createHash("sha256").update(archive).digest("hex"), c.sha256);
    assert.equal(new Crc64().update(archive).text, c.crc64nvme);

    // Any part can be made by itself, in any order, and cut anywhere.
    if (c.count) return; // in node that takes long
    const again = bundle.cut(c.part, pool),
      last = again.count;
    assert.equal(text64(await again.sum(last)), c.sums[last - 1]);
    assert.equal(text64(await again.sum(1, { fresh: true })), c.sums[0]);
    for (const [from, to] of [
      [0, 1],
      [3, 1000],
      [bundle.directory - 1, bundle.directory + 1],
      [bundle.length >> 1, bundle.length],
    ]) {
      const part = Buffer.from(
        await bundle
          .cut(c.part, pool)
          .part(from, Math.min(to, bundle.length))
          .then((blob) => blob.arrayBuffer()),
      );
      assert.ok(part.equals(archive.subarray(from, to)), `bytes from ${from} to ${to}`);
    }
  });
}

for (const c of golden.large) {
  test(`a bundle of more than memory is laid out as Go does: ${c.name}`, () => {
    const bundle = new Bundle(entries(c, false)),
      sums = c.entries.map(({ crc32 = 0 }) => crc32);
    assert.deepEqual([bundle.length, bundle.directory], [c.length, c.directory]);
    assert.deepEqual(
      bundle.entries.map(({ header }) => header),
      c.headers,
    );
    assert.deepEqual(
      bundle.entries.map(({ offset }) => offset),
      c.offsets,
    );
    assert.deepEqual(
      bundle.entries.map((_, i) => hex(bundle.header(i, sums[i]))),
      c.locals,
    );
    assert.equal(hex(bundle.tail(sums)), c.tail);
  });
}

test("the same paths are refused as in Go", () => {
  for (const { path, reason } of golden.paths) {
    let why = "";
    try {
      checkPath(path);
    } catch (error) {
      assert.ok(error instanceof BundleError);
      assert.equal(error.path, path);
      why = error.reason;
    }
    assert.equal(why, reason, JSON.stringify(path));
  }
  for (const path of ["a\ud800", "\udfffb", "x/\ud83d/y"]) {
    assert.throws(() => checkPath(path), { path, reason: "is not UTF-8" });
  }
});

test("the same bundles are refused as in Go, with the name of the entry", () => {
  for (const c of golden.refused) {
    assert.throws(() => new Bundle(entries(c, false)), { name: "BundleError", path: c.path, reason: c.reason });
  }
});

test("the entries of a chosen folder do not depend on the order in which it was read", async () => {
  const files = ["b/z.txt", "b/a.txt", "a.txt", "b/日本.txt"].map((path, i) =>
    Object.assign(fileOf(path, i, 10), { webkitRelativePath: path }),
  );
  const [one, two] = [files, files.toReversed?.() ?? [...files].reverse()].map((all) => {
    const choice = new Choice();
    choice.add(foundIn(all));
    return new Bundle(choice.entries);
  });
  assert.deepEqual(
    one.entries.map(({ path }) => path),
    ["a.txt", "b/a.txt", "b/z.txt", "b/日本.txt"],
  );
  assert.equal(text64(await one.cut(1e6, pool).sum(1)), text64(await two.cut(1e6, pool).sum(1)));
  assert.equal(one.entries[0].modified, 1e9);
});

// changing returns a file whose bytes can be changed, as those on a disk.
function changing(bytes) {
  const file = { size: bytes.length, reads: 0, broken: false };
  file.slice = (from = 0, to = bytes.length) => ({
    size: to - from,
    slice: (a, b) => file.slice(from + a, Math.min(from + b, to)),
    arrayBuffer: async () => {
      file.reads++;
      if (file.broken) throw new DOMException("gone", "NotReadableError");
      return bytes.slice(from, to).buffer;
    },
  });
  return { file, bytes };
}

test("each byte is read once for all checksums, and a changed file is named", async () => {
  const { file, bytes } = changing(bytesOf(1, 300));
  const bundle = new Bundle([
    { path: "first", file: fileOf("first", 2, 50) },
    { path: "second", file },
  ]);
  const parts = bundle.cut(100, pool);
  for (const number of parts.order()) await parts.sum(number);
  const shares = new Set(Array.from({ length: 300 }, (_, i) => Math.floor((bundle.entries[1].offset + i) / 100)));
  assert.equal(file.reads, shares.size);
  await parts.sum(3, { fresh: true });
  bytes[150]++;
  const at = Math.floor((bundle.entries[1].offset + 150) / 100) + 1;
  await assert.rejects(
    parts.sum(at, { fresh: true }),
    (error) => error instanceof ChangedError && error.path === "second",
  );
  await parts.sum(at); // what was read before is what was sent
  file.broken = true;
  await assert.rejects(bundle.cut(100, pool).sum(at), { name: "ChangedError", path: "second" });
});

test("a failed reading can be tried again", async () => {
  const { file } = changing(bytesOf(1, 300));
  const parts = new Bundle([{ path: "x", file }]).cut(1000, pool);
  file.broken = true;
  await assert.rejects(parts.sum(1), ChangedError);
  file.broken = false;
  await parts.sum(1);
});
