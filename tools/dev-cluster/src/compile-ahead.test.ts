import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { compileAhead } from "./compile-ahead.ts";
import { daemonNames } from "./daemons.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const reader = join(root, "packages/apimachinery/src/flags/quick-imports.ts");

/** A minimal repository with one built daemon. */
function aRepository(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "cox-compiled-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const dist = join(folder, "packages", "small", "dist");
  const file = (name: string): string => join(dist, name);
  mkdirSync(dist, { recursive: true });
  writeFileSync(
    file("main.js"),
    `import { quickenImports } from ${JSON.stringify(reader)};\nquickenImports(import.meta.dirname);\nawait import("./small.js");\n`,
  );
  writeFileSync(file("small.js"), 'console.log("small 1.23");\n');
  writeFileSync(file("package.json"), '{ "type": "module" }\n');
  writeFileSync(file(".tsbuildinfo"), "");
  const compiled = (): string[] => globSync("compiled-code/**", { cwd: dist }).filter((name) => statSync(file(name)).isFile());
  /** Output of the daemon, and whether Node used the compile cache. */
  const start = async (): Promise<{ printed: string; code: string | undefined }> => {
    const env = { ...process.env, NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [file("main.js")], { env });
    return { printed: stdout, code: /V8 code cache for ESM \S+small\.js was ([a-z ]+)/.exec(stderr + stdout)?.[1] };
  };
  return { folder, dist, file, compiled, start };
}

test("a daemon uses the compiled code of the build and does not write to its folder", async (t) => {
  const { folder, file, compiled, start, dist } = aRepository(t);
  assert.deepEqual(await start(), { printed: "small 1.23\n", code: undefined });
  assert.deepEqual(compiled(), []);
  assert.deepEqual(await compileAhead(folder), [dist]);
  const files = compiled();
  assert.equal((await start()).code, "accepted");

  writeFileSync(file("small.js"), 'console.log("small 1.24");\n');
  const { printed, code } = await start();
  assert.equal(printed.split("\n")[0], "small 1.24");
  assert.notEqual(code, "accepted");
  assert.deepEqual(compiled(), files);
});

test("a daemon with flags of V8 of its own uses the compiled code, too", async (t) => {
  const { folder, file, start } = aRepository(t);
  const [early = "", late = ""] = readFileSync(file("main.js"), "utf8").split("await import");
  const flags = `(await import("node:v8")).setFlagsFromString("--no-turbofan");\n`;
  writeFileSync(file("main.js"), `${early}${flags}await import${late}`);
  await compileAhead(folder);
  assert.deepEqual(await start(), { printed: "small 1.23\n", code: "accepted" });
});

test("a damaged compiled file is ignored", async (t) => {
  const { folder, file, compiled, start } = aRepository(t);
  await compileAhead(folder);
  for (const broken of ["", "no code at all", "\0".repeat(4096)]) {
    for (const name of compiled()) writeFileSync(file(name), broken);
    const { printed, code } = await start();
    assert.match(printed, /small 1\.23\n/);
    assert.notEqual(code, "accepted");
  }
});

test("code is compiled once for each build", async (t) => {
  const { folder, file, start, dist } = aRepository(t);
  await compileAhead(folder);
  assert.deepEqual(await compileAhead(folder), []);
  utimesSync(file(".tsbuildinfo"), 1, 1);
  writeFileSync(file("small.js"), 'console.log("small 1.24");\n');
  assert.deepEqual(await compileAhead(folder), [dist]);
  assert.equal((await start()).code, "accepted");
});

test("a daemon that does not start leaves no compiled file", async (t) => {
  const { folder, file, compiled } = aRepository(t);
  writeFileSync(file("small.js"), "process.exit(1);\n");
  await assert.rejects(compileAhead(folder));
  assert.deepEqual(compiled(), []);
  assert.deepEqual(globSync("compiled-code*", { cwd: file("") }), []);
});

test("every daemon loads only modules of Node before its compiled code", () => {
  const mains = globSync("packages/*/src/main.ts", { cwd: root });
  assert.equal(mains.length, daemonNames.length);
  for (const name of mains) {
    const text = readFileSync(join(root, name), "utf8");
    const [early, late] = text.split("quickenImports(import.meta.dirname);\n");
    assert.deepEqual(early?.match(/from "(?!node:)[^"]+"/g), ['from "@coxswain/apimachinery/flags/quick-imports"'], name);
    const flags = /^ {2}setFlagsFromString\(".+"\);\n|^ {2}\/\/ .+\n/gm;
    assert.match(late?.replaceAll(flags, "") ?? "", /^ {2}await import\("\.\/[a-z-]+\.ts"\);\n\}\n$/, name);
  }
});
