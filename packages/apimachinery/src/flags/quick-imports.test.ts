import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { printVersionAlone } from "./quick-imports.ts";

const quickImports = join(import.meta.dirname, "quick-imports.ts");

/** Imports `packages/a/dist/late.js` of these files after quickenImports, in a new process. @returns its output */
async function run(t: TestContext, files: Readonly<Record<string, string>>): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "cox-imports-"));
  t.after(() => rmSync(root, { recursive: true }));
  const begin = `import { quickenImports } from ${JSON.stringify(quickImports)};\nquickenImports(import.meta.dirname);\n`;
  const all = {
    ...files,
    "package.json": '{ "type": "module" }',
    "packages/a/dist/main.js": `${begin}await import("./late.js");`,
  };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return (await promisify(execFile)(process.execPath, [join(root, "packages/a/dist/main.js")])).stdout;
}

test("an import of the project resolves to the named file, and to one module each time", async (t) => {
  const printed = await run(t, {
    "packages/a/dist/late.js": 'import "./sub/x.js"; import { seen } from "../../b/dist/seen b.js"; console.log(seen.join());',
    "packages/a/dist/sub/x.js": 'import "../y.js"; import { seen } from "../../../b/dist/seen b.js"; seen.push("x");',
    "packages/a/dist/y.js": 'import { seen } from "../../b/dist/seen b.js"; seen.push("y");',
    "packages/b/dist/seen b.js": "export const seen = [];",
  });
  assert.equal(printed, "y,x\n");
});

test("Node's resolver does not run for imports of the project", async (t) => {
  const late = 'import("./none.js").catch((err) => console.log(err.code));';
  assert.equal(await run(t, { "packages/a/dist/late.js": late }), "ENOENT\n");
});

test("a package of the project is resolved once", async (t) => {
  const move =
    'import { renameSync } from "node:fs"; const b = new URL("../../../node_modules/@coxswain/b", import.meta.url).pathname; renameSync(b, b + "-gone");';
  const printed = await run(t, {
    "packages/a/dist/late.js": `import "@coxswain/b"; import "./move.js"; await import("./again.js");`,
    "packages/a/dist/move.js": move,
    "packages/a/dist/again.js": 'import "@coxswain/b"; console.log("found");',
    "node_modules/@coxswain/b/index.js": "",
  });
  assert.equal(printed, "found\n");
});

test("packages of others and JSON imports are resolved by Node", async (t) => {
  const printed = await run(t, {
    "packages/a/dist/late.js":
      'import { one } from "other"; import data from "./data.json" with { type: "json" }; console.log(one, data);',
    "packages/a/dist/data.json": "[2]",
    "node_modules/other/package.json": '{ "main": "./main" }',
    "node_modules/other/main.js": 'exports.one = require("./folder").one;',
    "node_modules/other/folder/index.js": "exports.one = 1;",
  });
  assert.equal(printed, "1 [ 2 ]\n");
});

for (const { args, isPrinted } of [
  { args: ["--version"], isPrinted: true },
  { args: ["--version=true"], isPrinted: true },
  { args: ["--version=false"], isPrinted: false },
  { args: ["--version=raw"], isPrinted: false },
  { args: ["--version", "--no-such-flag"], isPrinted: false },
  { args: ["--v=2", "--version"], isPrinted: false },
  { args: [], isPrinted: false },
])
  test(`the command line [${args.join(" ")}] is ${isPrinted ? "answered before" : "left to"} the daemon`, (t) => {
    const { mock } = t.mock.method(process.stdout, "write", () => true);
    const answered = printVersionAlone(args);
    const printed = mock.calls.map(({ arguments: [text] }) => text);
    mock.restore();
    assert.equal(answered, isPrinted);
    assert.deepEqual(printed, isPrinted ? ["Kubernetes v1.23.0\n"] : []);
  });
