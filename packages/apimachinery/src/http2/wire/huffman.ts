import { HpackError } from "./hpack-error.ts";

/**
 * Decoder of HPACK's Huffman code. A state machine consumes half an octet per step: its state is a node of the code tree, and
 * each step yields the next node and at most one complete octet, since no code is shorter than five bits.
 * Source: RFC 7541, section 5.2 and appendix B
 */

/**
 * Code length in bits of each octet, as base-36 digits. Lengths suffice because the code is canonical: sorted by length and then
 * by octet, each code is its predecessor plus one, shifted to its length.
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
/** EOS, whose code is all ones; a string is padded with up to seven of its leading bits. */
const endBits = 30;
const endSymbol = 256;

export interface HuffmanCode {
  readonly symbol: number;
  readonly bits: number;
  readonly code: number;
}

/** The codes of all octets and of EOS, shortest first. */
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
 * `steps` has a row for each node of the tree and a step for each half octet: the completed octet, {@link completes} if there is
 * one, and the offset of the next row. `mayEnd` is 1 for nodes at which a string may end.
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
  // The last octet is padded with ones.
  const mayEnd = new Uint8Array(nodes);
  for (let node = 0, ones = 0; ones < 8; ones++) {
    mayEnd[node] = 1;
    node = tree[2 * node + 1] as number;
  }
  return { steps, mayEnd };
}

/** @returns the two branches of each node: the number of another node, or the complement of an octet */
function newTree(): { tree: Int16Array; nodes: number } {
  const tree = new Int16Array(2 * (codeBits.length + 1));
  const root = 0;
  /** Node that EOS leads to, which must not occur in a string. It has no way out. */
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

/** Upper bound of the decoded size: no code is shorter than 5 bits. */
const mostOctets = (codedBytes: number): number => Math.floor((codedBytes * 8) / 5);

const usualRoom = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * @returns one character for each octet
 * @throws HpackError for truncated input, wrong padding or EOS
 */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string {
  // Each step writes an octet, complete or not, so the last one may write one octet past the result.
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
