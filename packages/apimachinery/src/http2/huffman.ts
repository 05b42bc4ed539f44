import { HpackError } from "./hpack-error.ts";

/**
 * Texts in the Huffman code of HTTP/2's header fields, read half an octet at a time by a machine that knows, for each place in
 * the tree of codes, where four bits lead and which octet they complete: never more than one, as no code is shorter than five.
 * Source: RFC 7541, section 5.2 and appendix B
 */

/**
 * The bits of each octet's code, as digits to the base of 36. They are enough: in the order of their lengths, and of octets
 * within one length, each code is the one before it plus one.
 */
const codeBits =
  "dnsssssssoussuss" + // 0x00
  "ssssssusssssssss" +
  "6aacd68baa8b8666" + // space
  "555666666678f6ca" + // 0
  "d677777777777777" + // @
  "77777777878djde6" + // P
  "f565656665776665" + // `
  "67655677777fbeds" + // p
  "kmkkmmmnmnnnnnon" + // 0x80
  "oomnonnnnlmnmnno" +
  "mlkmmnnlnmmolmnn" +
  "llmlnmnnkmmmnmmn" +
  "qqkjmnmpqqqrrqop" +
  "jlqrrqrollqqsrrr" +
  "koklmllnmmppooqn" +
  "qrqqrrrrrsrrrrrq";
/** The symbol that ends a text has the code of only ones, of which a text may show no more than fits in an octet. */
const endBits = 30;
const endSymbol = 256;

export interface HuffmanCode {
  readonly symbol: number;
  readonly bits: number;
  readonly code: number;
}

/** Those of all octets and of the end, shortest first. */
export function huffmanCodes(): HuffmanCode[] {
  const lengths = [...Array.from(codeBits, (digit) => Number.parseInt(digit, 36)), endBits];
  const sorted = lengths.map((bits, symbol) => ({ symbol, bits })).sort((a, b) => a.bits - b.bits || a.symbol - b.symbol);
  let next = 0;
  let before = 0;
  return sorted.map(({ symbol, bits }) => {
    const code = next * 2 ** (bits - before);
    next = code + 1;
    before = bits;
    return { symbol, bits, code };
  });
}

const completes = 0x100;
const rowShift = 9;
const rowSteps = 16;

/**
 * `steps` has a row for each node of the tree, a step for each half of an octet: the octet that is complete, {@link completes} if
 * there is one, and where the next row begins. `mayEnd` tells by node whether a text may end there.
 */
const { steps, mayEnd } = newMachine();

function newMachine() {
  const { tree, nodes } = newTree();
  const steps = new Int32Array(nodes * rowSteps);
  for (let at = 0; at < steps.length; at++) {
    let node = Math.floor(at / rowSteps);
    let complete = 0;
    for (let bit = 3; bit >= 0; bit--) {
      const next = tree[2 * node + ((at >> bit) & 1)] as number;
      if (next < 0) complete = completes | ~next;
      node = Math.max(next, 0);
    }
    steps[at] = ((node * rowSteps) << rowShift) | complete;
  }
  // The last octet is filled up with ones.
  const mayEnd = new Uint8Array(nodes);
  for (let node = 0, ones = 0; ones < 8; ones++) {
    mayEnd[node] = 1;
    node = tree[2 * node + 1] as number;
  }
  return { steps, mayEnd };
}

/** @returns the two branches of each node, which lead to another node or, as its complement, to an octet */
function newTree(): { tree: Int16Array; nodes: number } {
  const tree = new Int16Array(2 * (codeBits.length + 1));
  const root = 0;
  /** Where the symbol for the end leads, which is no part of a text; nothing leads out of it. */
  const refused = 1;
  let nodes = 2;
  tree.fill(refused, 2 * refused, 2 * nodes);
  for (const { symbol, bits, code } of huffmanCodes()) {
    let node = root;
    for (let bit = bits - 1; bit > 0; bit--) node = tree[2 * node + ((code >> bit) & 1)] ||= nodes++;
    tree[2 * node + (code & 1)] = symbol === endSymbol ? refused : ~symbol;
  }
  return { tree, nodes };
}

/** No code is shorter than 5 bits. */
const mostOctets = (codedBytes: number): number => Math.floor((codedBytes * 8) / 5);

const usualRoom = Buffer.allocUnsafeSlow(16 * 1024);

/** @returns one character for each octet @throws HpackError for a code that is cut off, and for the one that is no octet's */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string {
  // Each step writes, whether it completes an octet or not: the last one may go beyond.
  const room = mostOctets(end - start) + 1;
  const octets = room <= usualRoom.length ? usualRoom : Buffer.allocUnsafeSlow(room);
  let step = 0;
  let count = 0;
  for (let at = start; at < end; at++) {
    const octet = bytes[at] as number;
    step = steps[(step >> rowShift) + (octet >> 4)] as number;
    octets[count] = step;
    count += (step & completes) >> 8;
    step = steps[(step >> rowShift) + (octet & 15)] as number;
    octets[count] = step;
    count += (step & completes) >> 8;
  }
  if (mayEnd[(step >> rowShift) / rowSteps] !== 1) throw new HpackError("a text in Huffman code does not end as it should");
  return octets.toString("latin1", 0, count);
}
