import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const plugin = join(import.meta.dirname, "..", "bin", "kubectl-why");

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The arguments of each kubectl that was started. */
  readonly requested: readonly string[];
}

/** Runs the plugin with a kubectl that notes its arguments and gives this answer; `config` has the namespace `team`. */
function why(t: { after(fn: () => void): void }, args: readonly string[], answer: string, code = 0): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "cox-why-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const kubectl = join(folder, "kubectl");
  writeFileSync(join(folder, "answer"), answer);
  writeFileSync(
    kubectl,
    `#!/bin/sh\nprintf '%s|' "$@" >>${folder}/requested; echo >>${folder}/requested\ncase "$*" in *"config view"*) printf team; exit 0 ;; esac\ncat ${folder}/answer; exit ${code}\n`,
  );
  chmodSync(kubectl, 0o755);
  writeFileSync(join(folder, "requested"), "");
  return new Promise((resolve) => {
    const child = execFile(plugin, [...args], { env: { ...process.env, KUBECTL: kubectl } }, (_, stdout, stderr) => {
      const requested = readFileSync(join(folder, "requested"), "utf8").split("\n").filter(Boolean);
      resolve({ code: child.exitCode ?? -1, stdout, stderr, requested });
    });
  });
}

const wrong = "Cause: pod/web: x\n";

for (const { args, path, flags = "" } of [
  { args: ["pod/web"], path: "namespaces/team/pod/web?output=text" },
  { args: ["po", "web", "-n", "a"], path: "namespaces/a/po/web?output=text" },
  { args: ["-na", "deployments.apps/web", "-o=json"], path: "namespaces/a/deployments.apps/web?output=json" },
  { args: ["not", "pod/web", "node/n1"], path: "namespaces/team/pod/web?output=text&about=node/n1" },
  { args: ["not", "web", "n1", "--namespace=a"], path: "namespaces/a/pod/web?output=text&about=node/n1" },
  { args: ["crb", "system:basic-user", "-n", "a"], path: "namespaces/a/crb/system:basic-user?output=text" },
  {
    args: ["pod/web", "-n", "a", "--kubeconfig", "/a b/c'd", "--context=x y", "--token", "t"],
    path: "namespaces/a/pod/web?output=text",
    flags: "|--kubeconfig|/a b/c'd|--context=x y|--token|t".slice(1),
  },
]) {
  test(`kubectl why ${args.join(" ")}`, async (t) => {
    const { requested, stdout, code, stderr } = await why(t, args, wrong);
    assert.equal(stderr, "");
    assert.equal(requested.at(-1), `${flags === "" ? "" : `${flags}|`}get|--raw|/debug/explain/${path}|`);
    assert.deepEqual([stdout, code], [wrong, 1]);
  });
}

for (const { name, args, answer, code, kubectl = 0 } of [
  { name: "well", args: ["pod/web"], answer: "Well: pod/web: nothing is wrong with it.\n", code: 0 },
  { name: "well, as JSON", args: ["pod/web", "-o", "json"], answer: '{"healthy":true}\n', code: 0 },
  {
    name: "not well, as JSON with a text that says otherwise",
    args: ["pod/web", "-o", "json"],
    answer: '{"healthy":false,"summary":"\\"healthy\\":true"}\n',
    code: 1,
  },
  { name: "no answer", args: ["pod/web"], answer: "", code: 2, kubectl: 1 },
  { name: "well at once, watched", args: ["pod/web", "--watch"], answer: "Well: pod/web\n", code: 0 },
]) {
  test(`the exit code of kubectl why tells: ${name}`, async (t) => {
    assert.equal((await why(t, args, answer, kubectl)).code, code);
  });
}

for (const { args, says } of [
  { args: [], says: /which object/ },
  { args: ["pod"], says: /the form is/ },
  { args: ["pod/"], says: /the form is TYPE\/NAME/ },
  { args: ["pod/a", "pod/b"], says: /one object at a time/ },
  { args: ["pod", "a", "b"], says: /too many arguments/ },
  { args: ["not", "pod/a"], says: /not pod\/NAME node\/NAME/ },
  { args: ["pod/a", "--foo"], says: /unknown flag: --foo/ },
  { args: ["pod/a", "-n"], says: /-n needs a value/ },
  { args: ["pod/a", "-o", "xml"], says: /it is text, json or table/ },
  { args: ["pod/a?watch=1"], says: /not the name of an object/ },
  { args: ["pod/a", "-n", "a/../b"], says: /not the name of a namespace/ },
]) {
  test(`kubectl why refuses: ${args.join(" ")}`, async (t) => {
    const { code, stderr, requested } = await why(t, args, wrong);
    assert.equal(code, 2);
    assert.match(stderr, says);
    assert.deepEqual(requested, []);
  });
}

test("kubectl why --help shows forms, flags and exit codes", async (t) => {
  const { code, stdout, requested } = await why(t, ["--help"], wrong);
  assert.equal(code, 0);
  for (const part of ["kubectl why not pod/NAME node/NAME", "--watch", "Exit codes:"]) assert.ok(stdout.includes(part), part);
  assert.deepEqual(requested, []);
});
