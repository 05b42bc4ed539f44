import assert from "node:assert/strict";
import { test } from "node:test";
import { readAll, readElement, readString } from "./der.ts";
import { nameToSign, subjectOfName } from "./distinguished-name.ts";
import { escapeHtml } from "./plain-error.ts";
import { verbOfMethod } from "./verb-of-method.ts";

/** A DER element. */
function der(tag: number, ...parts: (Buffer | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const attribute = (oid: string, value: string | Buffer, tag = 0x0c): Buffer =>
  der(0x30, der(0x06, Buffer.from(oid, "hex")), der(tag, value));
const set = (...attributes: Buffer[]): Buffer => der(0x31, ...attributes);

test("a subject has the last of several common names, and all organizations in their order", () => {
  const name = Buffer.concat([
    set(attribute("55040a", "b")),
    set(attribute("550403", "first"), attribute("55040a", "a")),
    set(attribute("550403", "last")),
    set(attribute("55040a", "b")),
    set(attribute("55040b", "unit")),
  ]);
  assert.deepEqual(subjectOfName(name), { commonName: "last", organizations: ["b", "a", "b"] });
  assert.deepEqual(subjectOfName(Buffer.alloc(0)), { commonName: "", organizations: [] });
});

test("a signed certificate takes over the known attributes in Go's order, without empty values", () => {
  const known = [
    ["550405", "2.5.4.5"],
    ["550403", "2.5.4.3"],
    ["550411", "2.5.4.17"],
    ["550409", "2.5.4.9"],
    ["550408", "2.5.4.8"],
    ["550407", "2.5.4.7"],
    ["55040b", "2.5.4.11"],
    ["55040a", "2.5.4.10"],
    ["550406", "2.5.4.6"],
  ] as const;
  const name = Buffer.concat([
    set(attribute("55040c", "a title")),
    ...known.map(([type]) => set(attribute(type, type))),
    set(attribute("55040a", "")),
    set(attribute("55040a", "more")),
  ]);
  assert.deepEqual(
    nameToSign(name),
    known.toReversed().map(([type, oid]) => {
      const values = oid === "2.5.4.10" ? [type, "more"] : [type];
      return { [oid]: values.map((utf8String) => ({ utf8String })) };
    }),
  );
  assert.deepEqual(nameToSign(set(attribute("550403", ""))), []);
  const repeated = Buffer.concat(["550403", "550405"].flatMap((type) => [set(attribute(type, "1"), attribute(type, "2"))]));
  assert.deepEqual(nameToSign(repeated), [{ "2.5.4.3": [{ utf8String: "2" }] }, { "2.5.4.5": [{ utf8String: "2" }] }]);
});

test("strings are decoded by their types", () => {
  for (const [tag, content, want] of [
    [0x0c, Buffer.from("grün"), "grün"],
    [0x13, Buffer.from("plain"), "plain"],
    [0x14, Buffer.from([0xfc]), "ü"],
    [0x1e, Buffer.from([0x00, 0xfc, 0x26, 0x03]), "ü☃"],
  ] as const) {
    assert.equal(readString(readElement(der(tag, content), 0)), want);
  }
  assert.throws(() => readString(readElement(der(0x1e, "abc"), 0)), /^Error: malformed BMPString$/);
});

test("the length of an element has up to four octets, and is not beyond the input", () => {
  for (const length of [0, 1, 0x7f, 0x80, 0xff, 0x100, 0x1234]) {
    const bytes = Buffer.concat([der(0x04, Buffer.alloc(length)), Buffer.from("x")]);
    const { tag, content, end } = readElement(bytes, 0);
    assert.deepEqual([tag, content.length, end], [4, length, bytes.length - 1]);
  }
  assert.equal(readElement(Buffer.from([4, 0x84, 0, 0, 0, 1, 7]), 0).content.toString("hex"), "07");
  for (const [bytes, message] of [
    [[], "truncated DER"],
    [[4], "truncated DER"],
    [[4, 1], "truncated DER"],
    [[4, 2, 0], "truncated DER"],
    [[4, 0x80, 0], "malformed DER length"],
    [[4, 0x85, 0, 0, 0, 0, 1, 7], "malformed DER length"],
    [[4, 0x82, 1], "malformed DER length"],
    [[4, 0x81, 2, 0], "truncated DER"],
  ] as const) {
    assert.throws(() => readElement(Buffer.from(bytes), 0), { message });
  }
  const two = readAll(Buffer.concat([der(2, "a"), der(3, "bc")]));
  assert.deepEqual(
    two.map(({ tag, content }) => [tag, content.toString()]),
    [
      [2, "a"],
      [3, "bc"],
    ],
  );
  assert.throws(() => readAll(Buffer.concat([der(2, "a"), Buffer.from([3])])), /truncated/);
});

test("the verb of a request on one object follows from its method", () => {
  assert.deepEqual(
    ["POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => verbOfMethod[method]),
    ["create", "get", "get", "update", "patch", "delete", undefined],
  );
});

test("text between tags has no tags", () => assert.equal(escapeHtml("<a>&amp;</a>"), "&lt;a&gt;&amp;amp;&lt;/a&gt;"));
