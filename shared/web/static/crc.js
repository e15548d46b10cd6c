// Checksums: the CRC64NVME of parts and whole files, as S3 keeps it, and the CRC-32 (IEEE 802.3) of
// files in a bundle. Both are computed piece by piece, and for joined pieces without their bytes,
// as shared/wire does in Go.
//
//   const sum = new Crc64().update(bytes);
//   sum.append(sumOfTheNextPiece, itsLength);  // as if its bytes had followed
//   sum.text;                                  // as S3 and Ferry write it
//
// Exports: Crc64 and Crc32, both with update(bytes), append(value, length), value and text, and a
// constructor that takes a value to continue from; text64(value).
//
// The value of a CRC-32 is a number. A CRC64NVME has 64 bits, more than a number holds exactly: its
// value is {hi, lo}, two numbers of 32 bits, which can be sent to workers. BigInt would be a
// hundred times slower.

/** @typedef {{ hi: number, lo: number }} Sum64 */

// The polynomials with their bits reflected: the highest bit is the lowest power.
const POLY64 = { hi: 0x9a6c9329, lo: 0xac4bc9b5 };
const POLY32 = 0xedb88320;

// Tables for eight bytes at once (64 bits) and sixteen (32 bits): row n has, for each byte, its sum
// with n zero bytes behind it. The tables are signed, because engines keep such numbers in registers.
const HI = new Int32Array(8 * 256);
const LO = new Int32Array(8 * 256);
const T32 = new Int32Array(16 * 256);

for (let byte = 0; byte < 256; byte++) {
  let hi = 0,
    lo = byte,
    narrow = byte;
  for (let bit = 0; bit < 8; bit++) {
    const odd = -(lo & 1);
    lo = ((lo >>> 1) | (hi << 31)) ^ (POLY64.lo & odd);
    hi = (hi >>> 1) ^ (POLY64.hi & odd);
    narrow = (narrow >>> 1) ^ (POLY32 & -(narrow & 1));
  }
  HI[byte] = hi;
  LO[byte] = lo;
  T32[byte] = narrow;
}
for (let i = 256; i < 16 * 256; i++) {
  T32[i] = (T32[i - 256] >>> 8) ^ T32[T32[i - 256] & 255];
}
for (let i = 256; i < 8 * 256; i++) {
  const hi = HI[i - 256],
    lo = LO[i - 256];
  HI[i] = (hi >>> 8) ^ HI[lo & 255];
  LO[i] = ((lo >>> 8) | (hi << 24)) ^ LO[lo & 255];
}

/** CRC64NVME, incremental. `value` is {hi, lo}. */
export class Crc64 {
  #hi = -1; // inverted, as the register is
  #lo = -1;

  /** @param {Sum64} [value] */
  constructor(value) {
    if (value) this.value = value;
  }

  /**
   * Adds bytes.
   * @param {Uint8Array} bytes
   */
  update(bytes) {
    const { head, words } = cut(bytes, 2);
    this.#slowly(bytes, 0, head);
    let hi = this.#hi,
      lo = this.#lo;
    for (let at = 0; at < words.length; at += 2) {
      const a = lo ^ words[at],
        b = hi ^ words[at + 1];
      const a0 = 1792 + (a & 255),
        a1 = 1536 + ((a >>> 8) & 255),
        a2 = 1280 + ((a >>> 16) & 255),
        a3 = 1024 + (a >>> 24);
      const b0 = 768 + (b & 255),
        b1 = 512 + ((b >>> 8) & 255),
        b2 = 256 + ((b >>> 16) & 255),
        b3 = b >>> 24;
      lo = LO[a0] ^ LO[a1] ^ LO[a2] ^ LO[a3] ^ LO[b0] ^ LO[b1] ^ LO[b2] ^ LO[b3];
      hi = HI[a0] ^ HI[a1] ^ HI[a2] ^ HI[a3] ^ HI[b0] ^ HI[b1] ^ HI[b2] ^ HI[b3];
    }
    this.#hi = hi;
    this.#lo = lo;
    this.#slowly(bytes, head + 4 * words.length, bytes.length);
    return this;
  }

  /** @param {Uint8Array} bytes @param {number} from @param {number} to */
  #slowly(bytes, from, to) {
    let hi = this.#hi,
      lo = this.#lo;
    for (let i = from; i < to; i++) {
      const t = (lo ^ bytes[i]) & 255;
      lo = ((lo >>> 8) | (hi << 24)) ^ LO[t];
      hi = (hi >>> 8) ^ HI[t];
    }
    this.#hi = hi;
    this.#lo = lo;
  }

  /**
   * Adds a piece of which only the value and the length in bytes are known.
   * @param {Sum64} value @param {number} length
   */
  append(value, length) {
    const own = shift64(this.value, length);
    this.value = { hi: own.hi ^ value.hi, lo: own.lo ^ value.lo };
    return this;
  }

  get value() {
    return { hi: ~this.#hi >>> 0, lo: ~this.#lo >>> 0 };
  }

  set value({ hi, lo }) {
    this.#hi = ~hi;
    this.#lo = ~lo;
  }

  get text() {
    return text64(this.value);
  }
}

/** CRC-32 of IEEE 802.3, incremental. `value` is a number. */
export class Crc32 {
  #crc = -1;

  /** @param {number} [value] */
  constructor(value) {
    if (value) this.#crc = ~value;
  }

  /**
   * Adds bytes.
   * @param {Uint8Array} bytes
   */
  update(bytes) {
    const { head, words } = cut(bytes, 4);
    this.#slowly(bytes, 0, head);
    let crc = this.#crc;
    for (let at = 0; at < words.length; at += 4) {
      const a = crc ^ words[at],
        b = words[at + 1],
        c = words[at + 2],
        d = words[at + 3];
      crc =
        T32[3840 + (a & 255)] ^
        T32[3584 + ((a >>> 8) & 255)] ^
        T32[3328 + ((a >>> 16) & 255)] ^
        T32[3072 + (a >>> 24)] ^
        T32[2816 + (b & 255)] ^
        T32[2560 + ((b >>> 8) & 255)] ^
        T32[2304 + ((b >>> 16) & 255)] ^
        T32[2048 + (b >>> 24)] ^
        T32[1792 + (c & 255)] ^
        T32[1536 + ((c >>> 8) & 255)] ^
        T32[1280 + ((c >>> 16) & 255)] ^
        T32[1024 + (c >>> 24)] ^
        T32[768 + (d & 255)] ^
        T32[512 + ((d >>> 8) & 255)] ^
        T32[256 + ((d >>> 16) & 255)] ^
        T32[d >>> 24];
    }
    this.#crc = crc;
    this.#slowly(bytes, head + 4 * words.length, bytes.length);
    return this;
  }

  /** @param {Uint8Array} bytes @param {number} from @param {number} to */
  #slowly(bytes, from, to) {
    let crc = this.#crc;
    for (let i = from; i < to; i++) crc = (crc >>> 8) ^ T32[(crc ^ bytes[i]) & 255];
    this.#crc = crc;
  }

  /**
   * Adds a piece of which only the value and the length in bytes are known.
   * @param {number} value @param {number} length
   */
  append(value, length) {
    this.#crc = ~(shift32(this.value, length) ^ value);
    return this;
  }

  get value() {
    return ~this.#crc >>> 0;
  }

  get text() {
    return this.value.toString(16).padStart(8, "0");
  }
}

/**
 * A CRC64NVME as S3 writes it: base64 of its eight bytes, the highest first.
 * @param {Sum64} sum
 */
export function text64({ hi, lo }) {
  const bytes = [hi >>> 24, hi >>> 16, hi >>> 8, hi, lo >>> 24, lo >>> 16, lo >>> 8, lo];
  return btoa(String.fromCharCode(...bytes.map((byte) => byte & 255)));
}

// cut views bytes as little-endian words, the byte order of all machines with browsers: as many
// whole groups as there are from the first aligned address. head is how many bytes come before it.
/** @param {Uint8Array} bytes @param {number} group */
function cut(bytes, group) {
  const head = Math.min(bytes.length, -bytes.byteOffset & 3);
  const count = Math.floor((bytes.length - head) / (4 * group)) * group;
  return { head, words: count ? new Int32Array(bytes.buffer, bytes.byteOffset + head, count) : [] };
}

// shift64 returns what the value contributes once `length` more bytes have followed: it multiplies
// by x^8 for each byte. This takes as long for a terabyte as for a few bytes.
/** @param {Sum64} value @param {number} length */
function shift64(value, length) {
  let product = value;
  for (let n = length, k = 0; n > 0; n = Math.floor(n / 2), k++) {
    if (n % 2) product = multiply64(power64(k), product);
  }
  return product;
}

// power64 returns x^(8 * 2^k). There are at most 53 of them, because lengths are whole numbers.
const powers64 = [{ hi: 0x00800000, lo: 0 }];
/** @param {number} k */
function power64(k) {
  while (powers64.length <= k) {
    const last = powers64[powers64.length - 1];
    powers64.push(multiply64(last, last));
  }
  return powers64[k];
}

// multiply64 multiplies two polynomials modulo that of the checksum.
/** @param {Sum64} a @param {Sum64} b @returns {Sum64} */
function multiply64(a, b) {
  let { hi, lo } = b,
    productHi = 0,
    productLo = 0;
  for (let bit = 63; bit >= 0; bit--) {
    const has = -((bit > 31 ? a.hi >>> (bit - 32) : a.lo >>> bit) & 1),
      odd = -(lo & 1);
    productHi ^= hi & has;
    productLo ^= lo & has;
    lo = ((lo >>> 1) | (hi << 31)) ^ (POLY64.lo & odd);
    hi = (hi >>> 1) ^ (POLY64.hi & odd);
  }
  return { hi: productHi >>> 0, lo: productLo >>> 0 };
}

// The same for 32 bits.
/** @param {number} value @param {number} length */
function shift32(value, length) {
  let product = value;
  for (let n = length, k = 0; n > 0; n = Math.floor(n / 2), k++) {
    if (n % 2) product = multiply32(power32(k), product);
  }
  return product;
}

const powers32 = [0x00800000];
/** @param {number} k */
function power32(k) {
  while (powers32.length <= k) {
    const last = powers32[powers32.length - 1];
    powers32.push(multiply32(last, last));
  }
  return powers32[k];
}

/** @param {number} a @param {number} b */
function multiply32(a, b) {
  let product = 0;
  for (let bit = 31; bit >= 0; bit--) {
    product ^= b & -((a >>> bit) & 1);
    b = (b >>> 1) ^ (POLY32 & -(b & 1));
  }
  return product >>> 0;
}
