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

/**
 * The outcomes of successive `kubectl get --raw`; the last one repeats. A call without an answer exits with 1 and prints its failure
 * to stderr.
 */
interface Script {
  readonly answers: readonly string[];
  readonly failures: readonly string[];
}

/**
 * Runs the plugin with a fake kubectl that records its arguments and prints `answer`; the namespace of its kubeconfig is `team`, and
 * `sleep` returns at once.
 */
function why(
  t: { after(fn: () => void): void },
  args: readonly string[],
  answer: string | Script,
  code = 0,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "cox-why-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const kubectl = join(folder, "kubectl");
  const { answers, failures } = typeof answer === "string" ? { answers: [answer], failures: [] } : answer;
  const count = Math.max(answers.length, failures.length);
  for (let i = 0; i < count; i++) {
    writeFileSync(join(folder, `answer-${i + 1}`), answers[i] ?? "");
    const isFailure = failures[i] !== undefined && (answers[i] ?? "") === "";
    writeFileSync(join(folder, `failure-${i + 1}`), failures[i] ? `${failures[i]}\n` : "");
    writeFileSync(join(folder, `code-${i + 1}`), `${isFailure ? 1 : code}`);
  }
  writeFileSync(
    kubectl,
    `#!/bin/sh
printf '%s|' "$@" >>${folder}/requested; echo >>${folder}/requested
case "$*" in *"config view"*) printf team; exit 0 ;; esac
echo >>${folder}/asked; n=$(wc -l <${folder}/asked); [ $n -le ${count} ] || n=${count}
cat ${folder}/answer-$n; cat ${folder}/failure-$n >&2; exit $(cat ${folder}/code-$n)
`,
  );
  writeFileSync(join(folder, "sleep"), "#!/bin/sh\n");
  for (const name of ["kubectl", "sleep"]) chmodSync(join(folder, name), 0o755);
  writeFileSync(join(folder, "requested"), "");
  const PATH = `${folder}:${process.env["PATH"]}`;
  return new Promise((resolve) => {
    const child = execFile(
      plugin,
      [...args],
      { env: { ...process.env, PATH, KUBECTL: kubectl, ...env } },
      (_, stdout, stderr) => {
        const requested = readFileSync(join(folder, "requested"), "utf8").split("\n").filter(Boolean);
        resolve({ code: child.exitCode ?? -1, stdout, stderr, requested });
      },
    );
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
  { name: "well", args: ["pod/web"], answer: "Healthy: pod/web: nothing is wrong with it.\n", code: 0 },
  { name: "well, as JSON", args: ["pod/web", "-o", "json"], answer: '{"healthy":true}\n', code: 0 },
  {
    name: "not well, as JSON with a text that says otherwise",
    args: ["pod/web", "-o", "json"],
    answer: '{"healthy":false,"summary":"\\"healthy\\":true"}\n',
    code: 1,
  },
  { name: "no answer", args: ["pod/web"], answer: "", code: 2, kubectl: 1 },
  { name: "well at once, watched", args: ["pod/web", "--watch"], answer: "Healthy: pod/web\n", code: 0 },
]) {
  test(`the exit code of kubectl why: ${name}`, async (t) => {
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

/** Errors of kubectl 1.23, and the line that the plugin prints for each. */
for (const { name, says, line } of [
  {
    name: "an unknown type",
    says: 'Error from server (BadRequest): the server doesn\'t have a resource type "foo"',
    line: 'the server doesn\'t have a resource type "foo"; list them: kubectl api-resources',
  },
  {
    name: "a missing object",
    says: 'Error from server (NotFound): pods "web" not found',
    line: 'pods "web" not found (in namespace team, unless its type has none); list them: kubectl get pod --all-namespaces',
  },
  {
    name: "no right to read the object",
    says: 'Error from server (Forbidden): pods "web" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "team"',
    line: 'pods "web" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "team"; see what you may: kubectl auth can-i --list -n team',
  },
  {
    name: "no right to ask",
    says: 'Error from server (Forbidden): forbidden: User "jane" cannot get path "/debug/explain/namespaces/team/pod/web"',
    line: 'forbidden: User "jane" cannot get path "/debug/explain/namespaces/team/pod/web"; an administrator allows it: ClusterRoleBinding system:explain',
  },
  {
    name: "a server without explanations",
    says: "Error from server (NotFound): the server could not find the requested resource",
    line: "this API server has no explanations: it is not Coxswain's, or older than they are; try: kubectl describe pod/web -n team",
  },
  {
    name: "a server that is not there",
    says: "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?",
    line: "the API server does not answer: The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?; see its address: kubectl config view --minify; on its machine: coxswain doctor",
  },
  {
    name: "a server of another authority",
    says: "Unable to connect to the server: x509: certificate signed by unknown authority",
    line: "the API server does not answer: x509: certificate signed by unknown authority; see its address: kubectl config view --minify; on its machine: coxswain doctor",
  },
  {
    name: "a wrong token",
    says: "error: You must be logged in to the server (Unauthorized)",
    line: "You must be logged in to the server (Unauthorized)",
  },
  {
    name: "a failure without a word",
    says: "",
    line: "kubectl get --raw /debug/explain/namespaces/team/pod/web failed without a message",
  },
]) {
  test(`kubectl why says in one line: ${name}`, async (t) => {
    const { code, stdout, stderr } = await why(t, ["pod/web"], { failures: [says], answers: [] });
    assert.deepEqual([code, stdout, stderr], [2, "", `kubectl why: ${line}\n`]);
  });
}

test("without kubectl on the PATH, kubectl why says so", async (t) => {
  const { code, stderr } = await why(t, ["pod/web"], wrong, 0, { KUBECTL: "no-such-kubectl" });
  assert.deepEqual([code, stderr], [2, "kubectl why: no-such-kubectl is not installed, or not on the PATH\n"]);
});

const away = "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?";
const missing = 'Error from server (NotFound): pods "web" not found';

test("a watch prints each change, continues while the server is away, and ends with 0 when the object is healthy", async (t) => {
  const other = wrong.replace("x", "y");
  const script = { answers: [wrong, wrong, "", "", other, "Healthy: pod/web\n"], failures: ["", "", away, away, "", ""] };
  const { code, stdout, stderr } = await why(t, ["pod/web", "--watch"], script);
  assert.deepEqual([code, stdout], [0, `${wrong}\n${other}\nHealthy: pod/web\n`]);
  assert.match(stderr, /^kubectl why: the API server does not answer: .*; asking again\n$/);
});

test("a watch ends with 0 when the object is deleted, and with 2 when it never existed or can no longer be read", async (t) => {
  const gone = await why(t, ["pod/web", "-w"], { answers: [wrong, ""], failures: ["", missing] });
  assert.deepEqual([gone.code, gone.stdout], [0, `${wrong}\nGone: pod/web was deleted.\n`]);
  assert.equal((await why(t, ["pod/web", "-w"], { answers: [""], failures: [missing] })).code, 2);
  const forbidden = 'Error from server (Forbidden): pods "web" is forbidden';
  assert.equal((await why(t, ["pod/web", "-w"], { answers: [wrong, ""], failures: ["", forbidden] })).code, 2);
});

test("kubectl why --help shows forms, flags and exit codes", async (t) => {
  const { code, stdout, requested } = await why(t, ["--help"], wrong);
  assert.equal(code, 0);
  for (const part of ["kubectl why not pod/NAME node/NAME", "--watch", "Exit codes:"]) assert.ok(stdout.includes(part), part);
  assert.deepEqual(requested, []);
});
