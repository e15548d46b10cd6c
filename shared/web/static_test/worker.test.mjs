import assert from "node:assert/strict";
import test from "node:test";
import { Crc32, Crc64 } from "../static/crc.js";
import { ChangedError, Pool, sums } from "../static/worker.js";
import { bytesOf } from "./cases.mjs";

const bytes = bytesOf(1, (3 << 20) + 5);
const pieces = Array.from({ length: 200 }, (_, i) => bytes.subarray(i * 1000, i * 1000 + i));
const wanted = (piece, crc32 = true) => ({
  length: piece.length,
  crc64: new Crc64().update(piece).value,
  crc32: crc32 ? new Crc32().update(piece).value : 0,
});

test("blobs are read in blocks, and their sums come in order", async () => {
  const blobs = [bytes, ...pieces].map((piece) => new Blob([piece]));
  assert.deepEqual(
    await new Pool({ Worker: null }).sums(blobs, { crc32: true }),
    [bytes, ...pieces].map((piece) => wanted(piece)),
  );
  for (const stream of [Blob.prototype.stream, null]) {
    // not all browsers read into given memory
    assert.deepEqual(await sums([Object.assign(new Blob([bytes]), { stream })]), [wanted(bytes, false)]);
  }
});

// FakeWorker answers as worker.js does in a worker, a moment later.
class FakeWorker {
  static started = 0;
  static busy = 0;
  static most = 0;

  constructor() {
    FakeWorker.started++;
  }

  async postMessage({ blobs, options }) {
    FakeWorker.most = Math.max(FakeWorker.most, ++FakeWorker.busy);
    await new Promise((resolve) => setTimeout(resolve, 3));
    const data = await sums(blobs, options).then(
      (all) => ({ sums: all }),
      (error) => ({ changed: error.index }),
    );
    FakeWorker.busy--;
    this.onmessage({ data });
  }

  terminate() {}
}

test("a few workers share the work", async () => {
  const pool = new Pool({ size: 3, Worker: FakeWorker }),
    blobs = pieces.map((piece) => new Blob([piece]));
  const both = await Promise.all([pool.sums(blobs, { crc32: true }), pool.sums(blobs, { crc32: true })]);
  assert.deepEqual(both, [pieces.map((piece) => wanted(piece)), pieces.map((piece) => wanted(piece))]);
  assert.deepEqual([FakeWorker.started, FakeWorker.most], [3, 3]);
  pool.close();
});

test("the blob that cannot be read is named", async () => {
  const broken = {
    size: 5,
    slice: () => broken,
    arrayBuffer: async () => {
      throw new Error("gone");
    },
  };
  const short = { size: 5, slice: () => short, arrayBuffer: async () => new ArrayBuffer(4) };
  const large = (pull) => ({ size: 3 << 20, stream: () => new ReadableStream({ type: "bytes", pull }) });
  const torn = large((stream) => stream.error(new Error("gone")));
  const shorter = large((stream) => {
    stream.close();
    stream.byobRequest.respond(0);
  });
  for (const Worker of [null, FakeWorker]) {
    for (const bad of [broken, short, torn, shorter]) {
      const blobs = [...pieces.map((piece) => new Blob([piece])), bad];
      await assert.rejects(
        new Pool({ Worker }).sums(blobs),
        (error) => error instanceof ChangedError && error.index === 200,
      );
    }
  }
});

test("without a worker the page computes itself", async () => {
  class Forbidden {
    constructor() {
      throw new Error("Content Security Policy");
    }
  }
  class Missing extends FakeWorker {
    postMessage() {
      setTimeout(() => this.onerror({ preventDefault() {} }));
    }
  }
  for (const Worker of [Forbidden, Missing]) {
    const pool = new Pool({ Worker });
    for (let i = 0; i < 2; i++) assert.deepEqual(await pool.sums([new Blob([bytes])]), [wanted(bytes, false)]);
  }
});

test("what nobody wants any more is not read", async () => {
  const controller = new AbortController(),
    pool = new Pool({ Worker: null });
  const all = pool.sums(
    pieces.map((piece) => new Blob([piece])),
    { signal: controller.signal },
  );
  controller.abort(new Error("enough"));
  await assert.rejects(all, /enough/);
  assert.deepEqual(await pool.sums([new Blob([bytes])]), [wanted(bytes, false)]);
});
