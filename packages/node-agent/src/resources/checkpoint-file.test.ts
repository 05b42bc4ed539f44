import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fnv32a } from "@coxswain/apimachinery/objects/meta/fnv";
import { goChecksum } from "./checkpoint-checksum.ts";
import { entriesOf, newCheckpointFile } from "./checkpoint-file.ts";

function checkpoint(t: TestContext, decode: (text: string) => string = (text) => text.toLowerCase()) {
  const dir = mkdtempSync(join(tmpdir(), "cox-checkpoint-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const path = join(dir, "state");
  return { dir, path, file: newCheckpointFile(path, { encode: (state: string) => state.toUpperCase(), decode }) };
}

test("a checkpoint is read as it was written, by the owner only, and replaced as a whole", (t) => {
  const { dir, path, file } = checkpoint(t);
  assert.equal(file.load(), undefined, "there is none yet");
  for (const state of ["first, the longer one", "second"]) file.save(state);
  assert.deepEqual([readFileSync(path, "utf8"), file.load(), readdirSync(dir)], ["SECOND", "second", ["state"]]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a checkpoint that is there and cannot be read is an error", (t) => {
  const { path, file } = checkpoint(t);
  mkdirSync(path);
  assert.throws(() => file.load(), { code: "EISDIR" });
});

for (const [err, want] of [
  [new TypeError("x is not a function"), "checkpoint is corrupted"],
  [new RangeError("Invalid array length"), "checkpoint is corrupted"],
  [new SyntaxError("Unexpected end of JSON input"), "Unexpected end of JSON input"],
] as const) {
  test(`a checkpoint whose reading ends with ${err.name} is refused: ${want}`, (t) => {
    const { path, file } = checkpoint(t, () => {
      throw err;
    });
    writeFileSync(path, "{}");
    assert.throws(() => file.load(), { message: want });
  });
}

test("entries are those of an object, and none of anything else", () => {
  assert.deepEqual(
    [{ a: 1 }, null, undefined, 7].map((value) => entriesOf(value)),
    [[["a", 1]], [], [], []],
  );
});

test("a checksum is over the keys of maps in their order, of numbers by value and of texts by bytes", () => {
  const of = { kind: "string", name: "string" } as const;
  const map = new Map([
    ["10", "b"],
    ["-1", "c"],
    ["9", "a"],
  ]);
  const sum = (numericKeys: boolean) => goChecksum(map, { kind: "map", name: "map[int]string", of, numericKeys });
  assert.equal(sum(true), fnv32a(Buffer.from("(map[int]string)map[-1:c 9:a 10:b]")));
  assert.equal(sum(false), fnv32a(Buffer.from("(map[int]string)map[-1:c 10:b 9:a]")));
});

test("a checksum is not made of a value of another type than the checkpoint's", () => {
  const of = { kind: "string", name: "string" } as const;
  for (const [type, value] of [
    [{ kind: "bytes", name: "[]uint8" }, "text"],
    [{ kind: "list", name: "[]string", of }, { 0: "a" }],
    [{ kind: "map", name: "map[string]string", of }, { a: "b" }],
    [{ kind: "struct", name: "state.Checkpoint", fields: [["A", of]] }, ["a"]],
  ] as const) {
    assert.throws(() => goChecksum(value, type), new TypeError(`a value is not a ${type.name}`));
  }
});

test("a checksum shows absent values, bytes, lists and pointers as upstream's printer does", () => {
  const of = { kind: "string", name: "string" } as const;
  const pointer = { kind: "pointer", to: { kind: "pointer", to: { kind: "list", name: "[]string", of } } } as const;
  for (const [type, value, text] of [
    [of, undefined, "(string)<nil>"],
    [{ kind: "list", name: "[]string", of }, ["a", null, "b"], "([]string)[a <nil> b]"],
    [pointer, ["a"], "(**[]string)<*>[a]"],
    [
      {
        kind: "struct",
        name: "x.T",
        fields: [
          ["P", pointer],
          ["N", { kind: "number", name: "int" }],
        ],
      },
      { P: ["a"], N: 3 },
      "(x.T){P:(**[]string)<*>[a] N:(int)3}",
    ],
  ] as const) {
    assert.equal(goChecksum(value, type), fnv32a(Buffer.from(text)), text);
  }
});
