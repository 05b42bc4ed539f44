import assert from "node:assert/strict";
import { test } from "node:test";
import { handWritten } from "./hand-written.ts";
import { mutatedText } from "./mutants.ts";

const text = "const a = 1;\nconst b = 2;\nconst c = 2;\n";
const read = (...faults: unknown[]) => handWritten(JSON.stringify(faults), (file) => (file === "a.ts" ? text : undefined));
const fault = { file: "a.ts", old: "b = 2", new: "b = 3", why: "b is too large" };

test("a hand-written fault replaces its text where that stands, under an id of its own", () => {
  const [mutant, other] = read(fault, { ...fault, new: "b = 4" });
  assert.ok(mutant !== undefined && other !== undefined);
  assert.partialDeepStrictEqual(mutant, { kind: "hand-written", file: "a.ts", line: 2, why: "b is too large" });
  assert.equal(mutatedText(text, mutant), "const a = 1;\nconst b = 3;\nconst c = 2;\n");
  assert.notEqual(mutant.id, other.id);
  assert.equal(read(fault)[0]?.id, mutant.id);
});

for (const { name, faults, message } of [
  { name: "a text that is not there", faults: [fault, { ...fault, old: "d" }], message: /^entry 2: a\.ts does not contain "d"$/ },
  {
    name: "a text that stands there twice",
    faults: [{ ...fault, old: " = 2" }],
    message: /^entry 1: a\.ts contains " = 2" more than once$/,
  },
  { name: "overlapping texts", faults: [{ ...fault, old: "\n" }], message: /more than once$/ },
  { name: "an unknown file", faults: [{ ...fault, file: "b.ts" }], message: /^entry 1: there is no source file b\.ts$/ },
  { name: "no change", faults: [{ ...fault, new: fault.old }], message: /^entry 1: it needs/ },
  { name: "no reason", faults: [{ ...fault, why: undefined }], message: /^entry 1: it needs/ },
  { name: "nothing", faults: [null], message: /^entry 1: it needs/ },
]) {
  test(`a list with ${name} is refused`, () => assert.throws(() => read(...faults), { message }));
}

test("a document that is no list is refused", () => {
  assert.throws(() => handWritten("{}", () => text), { message: "it is not a list of faults" });
});
