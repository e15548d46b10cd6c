import assert from "node:assert/strict";
import test from "node:test";
import { Crc32, Crc64, text64 } from "../static/crc.js";
import { bytesOf, cases } from "./cases.mjs";

test("the checksums are those of Go", () => {
  for (const c of cases("wire/testdata/checksums.json")) {
    const piece = bytesOf(c.seed, c.length),
      more = bytesOf(1, c.more);
    const wide = new Crc64().update(piece),
      narrow = new Crc32().update(piece);
    for (let times = 1, length = c.length; times < c.times; times *= 2, length *= 2) {
      wide.append(wide.value, length);
      narrow.append(narrow.value, length);
    }
    assert.equal(wide.append(new Crc64().update(more).value, c.more).text, c.crc64nvme, JSON.stringify(c));
    assert.equal(narrow.append(new Crc32().update(more).value, c.more).value, c.crc32, JSON.stringify(c));
  }
});

test("the check values of the algorithms", () => {
  const digits = new TextEncoder().encode("123456789");
  assert.deepEqual(new Crc64().update(digits).value, { hi: 0xae8b1486, lo: 0x0a799888 });
  assert.equal(new Crc32().update(digits).text, "cbf43926");
  assert.equal(new Crc64().text, "AAAAAAAAAAA=");
  assert.equal(text64({ hi: 0x00000000, lo: 0xffffffff }), "AAAAAP////8=");
});

test("bytes may come in pieces of any length, from any address", () => {
  const all = bytesOf(3, 5000),
    whole = [new Crc64().update(all).text, new Crc32().update(all).text];
  for (let step = 1; step < 70; step++) {
    const wide = new Crc64(),
      narrow = new Crc32();
    for (let at = 0; at < all.length; at += step) {
      wide.update(all.subarray(at, at + step));
      narrow.update(all.subarray(at, at + step));
    }
    assert.deepEqual([wide.text, narrow.text], whole, `pieces of ${step}`);
  }
  for (let cut = 0; cut < 100; cut++) {
    const [a, b] = [all.subarray(0, cut), all.subarray(cut)];
    assert.equal(new Crc64().update(a).append(new Crc64().update(b).value, b.length).text, whole[0]);
    assert.equal(new Crc32().update(a).append(new Crc32().update(b).value, b.length).text, whole[1]);
    assert.equal(new Crc64(new Crc64().update(a).value).update(b).text, whole[0]);
    assert.equal(new Crc32(new Crc32().update(a).value).update(b).text, whole[1]);
  }
});
