/** Copies the examples that are separate projects and runs the commands of their READMEs with the package as published. */
import assert from "node:assert/strict";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { checkTypes, root, run, writePackages } from "./testing-project.ts";

const folders = globSync("examples/*/package.json", { cwd: root }).map(dirname).sort();

for (const folder of folders) {
  const textOf = (file: string): string => readFileSync(join(root, folder, file), "utf8");

  test(`${folder} pins what it installs by hash, names no registry, and is in the list`, () => {
    const { dependencies, devDependencies } = JSON.parse(textOf("package.json"));
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      assert.match(version as string, /^\d+\.\d+\.\d+$/, name);
    }
    const { packages } = JSON.parse(textOf("package-lock.json")) as { packages: Record<string, Record<string, unknown>> };
    for (const [path, locked] of Object.entries(packages)) {
      if (path === "") continue;
      assert.match(String(locked["integrity"]), /^sha512-/, path);
      assert.equal(locked["resolved"], undefined, path);
    }
    assert.match(readFileSync(join(root, "examples/README.md"), "utf8"), new RegExp(`\\(${basename(folder)}/README\\.md\\)`));
  });
}

describe("in a copy of its folder", () => {
  const scratch = mkdtempSync(join(tmpdir(), "cox-examples-"));
  after(() => rmSync(scratch, { recursive: true, force: true }));
  before(() => writePackages(["testing"], join(scratch, ".cox/packages")));

  for (const folder of folders) {
    test(`${folder} does what its README says`, async () => {
      const copy = join(scratch, basename(folder));
      cpSync(join(root, folder), copy, { recursive: true, filter: (path) => basename(path) !== "node_modules" });
      const [, commands] = /^```sh\n(.*?)^```$/ms.exec(readFileSync(join(copy, "README.md"), "utf8")) ?? [];
      assert.ok(commands, "commands in its README");
      const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, ...env } = process.env;
      const PATH = `${dirname(process.execPath)}${delimiter}${env["PATH"]}`;
      await run("/bin/sh", ["-ec", commands], { cwd: copy, env: { ...env, PATH, COXSWAIN: scratch }, maxBuffer: 64 << 20 });
      const sources = globSync("*.{ts,mts}", { cwd: copy });
      const flags = ["--ignoreConfig", "--allowImportingTsExtensions", "--resolveJsonModule", "--skipLibCheck"];
      await checkTypes(copy, ...sources, ...flags);
    });
  }
});
