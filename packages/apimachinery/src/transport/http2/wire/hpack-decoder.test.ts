import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "../../../testing/cpu-time.ts";
import { hex, integerOctets, textOctets } from "../testing/fields-writer.ts";
import { newFieldsDecoder } from "./hpack.ts";

/** `name: value` by lines. */
const lines = (fields: readonly string[]): string[] =>
  fields.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${fields[i + 1]}`] : []));
const decodeOne = (block: Buffer): string[] => lines(newFieldsDecoder().decode(block).fields);

// RFC 7541, appendix C.2, and forms it does not show
for (const { name, block, want } of [
  { name: "nothing", block: "", want: [] },
  { name: "an indexed field", block: "82", want: [":method: GET"] },
  {
    name: "a literal that is remembered",
    block: "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
    want: ["custom-key: custom-header"],
  },
  { name: "a literal that is not remembered", block: "040c 2f73 616d 706c 652f 7061 7468", want: [":path: /sample/path"] },
  { name: "a literal that is never indexed", block: "1008 7061 7373 776f 7264 0673 6563 7265 74", want: ["password: secret"] },
  { name: "a literal with a name of a high index", block: "0f10 02 6869", want: ["content-type: hi"] },
  { name: "a literal without octets", block: "00 00 00", want: [": "] },
  { name: "a literal of octets beyond ASCII", block: "00 0161 02 e9ff", want: ["a: \u00e9\u00ff"] },
  { name: "the last of those that everybody knows", block: "bd", want: ["www-authenticate: "] },
  {
    name: "a length in more octets than it needs",
    block: "00 0161 7f80 8000" + "62".repeat(127),
    want: [`a: ${"b".repeat(127)}`],
  },
  { name: "a field that comes twice", block: "82 83 82", want: [":method: GET", ":method: POST", ":method: GET"] },
]) {
  test(`${name} is read`, () => {
    assert.deepEqual(decodeOne(hex(block)), want);
  });
}

const requests = [
  [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"],
  [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com", "cache-control: no-cache"],
  [":method: GET", ":scheme: https", ":path: /index.html", ":authority: www.example.com", "custom-key: custom-value"],
];
const responses = [
  [":status: 302", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:21 GMT", "location: https://www.example.com"],
  [":status: 307", "cache-control: private", "date: Mon, 21 Oct 2013 20:13:21 GMT", "location: https://www.example.com"],
  [
    ":status: 200",
    "cache-control: private",
    "date: Mon, 21 Oct 2013 20:13:22 GMT",
    "location: https://www.example.com",
    "content-encoding: gzip",
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
  ],
];

// RFC 7541, appendix C.3 to C.6
for (const { name, tableBytes, blocks, want } of [
  {
    name: "requests",
    tableBytes: 4096,
    blocks: [
      "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
      "8286 84be 5808 6e6f 2d63 6163 6865",
      "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ],
    want: requests,
  },
  {
    name: "requests in Huffman code",
    tableBytes: 4096,
    blocks: [
      "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
      "8286 84be 5886 a8eb 1064 9cbf",
      "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ],
    want: requests,
  },
  {
    name: "answers that forget what was said before",
    tableBytes: 256,
    blocks: [
      `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e
       1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
      "4803 3330 37c1 c0bf",
      `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d
       4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572
       7369 6f6e 3d31`,
    ],
    want: responses,
  },
  {
    name: "answers in Huffman code that forget what was said before",
    tableBytes: 256,
    blocks: [
      `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b
       97c8 e9ae 82ae 43d3`,
      "4883 640e ffc1 c0bf",
      `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf
       cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
    ],
    want: responses,
  },
]) {
  test(`one connection's ${name} are read`, () => {
    const decoder = newFieldsDecoder({ tableBytes });
    assert.deepEqual(
      blocks.map((block) => lines(decoder.decode(hex(block)).fields)),
      want,
    );
  });
}

for (const { name, block } of [
  { name: "an index of 0", block: "80" },
  { name: "a name with an undefined index", block: "7e 0161" },
  { name: "an undefined index", block: "be" },
  { name: "an index that is cut off", block: "ff" },
  { name: "an index that continues and is cut off", block: "ff 80" },
  { name: "a number beyond all numbers", block: "ff ffffffffffffffffff7f" },
  { name: "a number with zeros without end", block: `ff ${"80".repeat(20)} 00` },
  { name: "a literal without name", block: "00" },
  { name: "a literal without value", block: "00 0161" },
  { name: "a name that is cut off", block: "00 0261" },
  { name: "a value that is cut off", block: "00 0161 0562" },
  { name: "a value that is longer than all blocks", block: "00 0161 7fffffffff7f 62" },
  { name: "a value in Huffman code that is cut off", block: "00 0161 8cf1e3" },
  { name: "a value in Huffman code that does not end", block: "00 0161 82 fffe" },
  { name: "a value that has the symbol for its end", block: "00 0161 84 ffffffff" },
  { name: "a size beyond what was announced", block: "3f e2 1f" },
  { name: "a size behind a field", block: "82 20" },
  { name: "a third size", block: "20 3f e1 1f 20" },
  { name: "a size that is cut off", block: "3f" },
]) {
  test(`${name} is refused`, () => {
    assert.throws(() => newFieldsDecoder().decode(hex(block)), { name: "HpackError" });
  });
}

const remembered = (name: string, value: string): number[] => [0x40, ...textOctets(name, false), ...textOctets(value, false)];
const size = (bytes: number): number[] => integerOctets(0x20, 5, bytes);
const newest = 0x80 + 62;

test("a reduced table evicts its oldest entries and takes no more than its size", () => {
  const decoder = newFieldsDecoder();
  const decode = (...octets: number[]): string[] => lines(decoder.decode(Buffer.from(octets)).fields);
  decode(...remembered("a", "1"), ...remembered("b", "2"), ...remembered("c", "3"));
  assert.deepEqual(decode(newest, newest + 1, newest + 2), ["c: 3", "b: 2", "a: 1"]);
  assert.deepEqual(decode(...size(70), newest, newest + 1), ["c: 3", "b: 2"]);
  assert.throws(() => decode(newest + 2), /index 64/);
  assert.deepEqual(decode(...remembered("d", "4"), newest, newest + 1), ["d: 4", "d: 4", "c: 3"]);
  assert.throws(() => decode(newest + 2), /index 64/);
  // Shrinking to 0 and growing again evicts all entries.
  assert.deepEqual(decode(...size(0), ...size(4096)), []);
  assert.throws(() => decode(newest), /index 62/);
});

test("a field that is larger than the table empties it", () => {
  const decoder = newFieldsDecoder({ tableBytes: 100 });
  decoder.decode(Buffer.from([...remembered("a", "1"), ...remembered("b", "x".repeat(68))]));
  assert.throws(() => decoder.decode(Buffer.from([newest])), /index 62/);
});

test("a new entry's name may refer to an entry that it evicts", () => {
  const decoder = newFieldsDecoder({ tableBytes: 34 });
  decoder.decode(Buffer.from(remembered("a", "1")));
  const { fields } = decoder.decode(Buffer.from([0x40 + 62, ...textOctets("2", false), newest]));
  assert.deepEqual(lines(fields), ["a: 2", "a: 2"]);
});

test("a larger table is used once the peer has announced it", () => {
  const decoder = newFieldsDecoder({ tableBytes: 65_536 });
  const large = remembered("large", "x".repeat(5_000));
  decoder.decode(Buffer.from(large));
  assert.throws(() => decoder.decode(Buffer.from([newest])), /index 62/);
  const { fields } = decoder.decode(Buffer.from([...size(65_536), ...large, newest]));
  assert.equal(fields.length, 4);
});

test("a header list that is too large is reported, truncated, and still updates the table", () => {
  const decoder = newFieldsDecoder({ mostListBytes: 70 });
  const three = [...remembered("a", "1"), ...remembered("b", "2"), ...remembered("c", "3")];
  assert.deepEqual(decoder.decode(Buffer.from(three)), { fields: ["a", "1", "b", "2"], tooLarge: true, count: 3 });
  assert.deepEqual(decoder.decode(Buffer.from([newest])), { fields: ["c", "3"], tooLarge: false, count: 1 });
});

test("a small block that expands to a large list is neither kept nor slow", () => {
  const decoder = newFieldsDecoder({ mostListBytes: 65_536 });
  const bomb = Buffer.from([...remembered("a", "x".repeat(4_000)), ...new Array<number>(1_000_000).fill(newest)]);
  const tookMs = cpuMsOf(() => {
    const { fields, tooLarge } = decoder.decode(bomb);
    assert.equal(tooLarge, true);
    assert.equal(fields.length, 2 * Math.floor(65_536 / 4_033));
  });
  // Decodes to 4 GB; materialising the fields would take much longer.
  assert.ok(tookMs < 1000, `${tookMs} ms`);
});
