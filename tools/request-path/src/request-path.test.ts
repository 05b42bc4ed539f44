import assert from "node:assert/strict";
import { test } from "node:test";
import type { RanFunction } from "./coverage.ts";
import { figuresOf, moduleOf } from "./figures.ts";
import { limits } from "./limits.ts";
import { measureAll } from "./measure.ts";
import { returnsIn } from "./trace.ts";

test("a warm request runs at most the limited number of files, modules and returns to files", async (t) => {
  const paths = await measureAll((name) => limits[name]);
  assert.deepEqual([...paths.keys()], Object.keys(limits));
  for (const [name, { functions, returns = 0 }] of paths) {
    const { files, modules } = figuresOf(functions);
    const limit = limits[name] ?? { files: 0, modules: 0 };
    t.diagnostic(`${name}: ${files} files, ${modules} modules, ${returns} returns`);
    assert.ok(files > 5, `${name}: only ${files} files were seen to run`);
    assert.ok(files <= limit.files, `${name} runs ${files} files; \`main.ts --list\` names them`);
    assert.ok(returns <= (limit.returns ?? 0), `${name} comes back ${returns} times to files that it has left`);
    assert.ok(modules <= limit.modules, `${name} runs ${modules} modules; \`main.ts --list\` names them`);
  }
});

test("a module is a folder of a package's `src`", () => {
  assert.equal(moduleOf("packages/apiserver/src/handlers/create.ts"), "apiserver/handlers");
  assert.equal(moduleOf("packages/apiserver/src/registry/core/pods/strategy.ts"), "apiserver/registry");
  assert.equal(moduleOf("packages/apiserver/src/server/modules.ts"), "apiserver/server");
  assert.equal(moduleOf("packages/apiserver/src/storage/open.ts"), "apiserver/storage");
  assert.equal(moduleOf("packages/apimachinery/src/objects/codec/json.ts"), "apimachinery/objects");
});

test("counts each file once, and each function", () => {
  const ran = (file: string, name: string): RanFunction => ({ file, name, start: 0, end: 1, count: 1, scriptId: "1" });
  const functions = [
    ran("packages/apiserver/src/handlers/get.ts", "get"),
    ran("packages/apiserver/src/handlers/get.ts", "read"),
    ran("packages/apimachinery/src/objects/codec/json.ts", "decode"),
  ];
  assert.deepEqual(figuresOf(functions), { files: 2, modules: 2, functions: 3 });
});

test("a return is an entry into a file that was left before", () => {
  assert.equal(returnsIn(["a", "a", "b", "c"]), 0);
  assert.equal(returnsIn(["a", "b", "a", "a", "b"]), 2);
  assert.equal(returnsIn([]), 0);
});
