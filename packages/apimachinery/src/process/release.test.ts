import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { coxswainVersion, kubernetesRelease } from "./release.ts";

const root = join(import.meta.dirname, "..", "..", "..", "..");

test("every package.json has the version of this build", () => {
  const files = globSync(["package.json", "packages/*/package.json", "tools/*/package.json", "e2e/package.json"], { cwd: root });
  assert.ok(files.length > 10);
  for (const file of files) {
    const { version } = JSON.parse(readFileSync(join(root, file), "utf8")) as { version: string };
    assert.equal(version, coxswainVersion, file);
  }
});

test("the compose file and the documents name the archive and image of this build", () => {
  const files = globSync(["docs/**/*.md", "README.md", "tools/deploy/compose/*"], { cwd: root });
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    for (const [name, version] of text.matchAll(/coxswain[-:](\d+\.\d+\.\d+)/g))
      assert.equal(version, coxswainVersion, `${file}: ${name}`);
  }
});

test("the Kubernetes release is written in one place", () => {
  const { major, minor, gitVersion } = kubernetesRelease;
  assert.ok(gitVersion.startsWith(`v${major}.${minor}.`));
  const sources = globSync("packages/*/src/**/*.ts", { cwd: root }).filter(
    (file) => !file.endsWith(".test.ts") && !file.includes("/testing/"),
  );
  const copies = sources.filter((file) => readFileSync(join(root, file), "utf8").includes(`"${gitVersion}"`));
  assert.deepEqual(copies, [join("packages", "apimachinery", "src", "process", "release.ts")]);
});
