import assert from "node:assert/strict";
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, type TestContext, test } from "node:test";
import { settings } from "../framework/kubectl.ts";
import { freeSettings } from "../framework/own-cluster.ts";
import { cox, elsewhere } from "./run-cox.ts";

/** Copies the files that `cox` needs before anything is installed to a folder that other users can read. */
const clone = mkdtempSync(join(tmpdir(), "fresh clone-"));
after(() => rmSync(clone, { recursive: true, force: true }));
chmodSync(clone, 0o755);
cpSync(join(settings.root, "cox"), join(clone, "cox"));
for (const path of [
  "package.json",
  "packages/apimachinery/src/process/release.ts",
  "tools/dev-cluster/help",
  "tools/dev-cluster/src/download.mjs",
])
  cpSync(join(settings.root, path), join(clone, path), { recursive: true });
const { COX_STATE: _, ...env } = elsewhere;
const program = [join(clone, "cox")];
const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", ...program];

for (const { args, code, message } of [
  { args: ["version"], code: 0, message: /^Coxswain \d+\.\d+\.\d+, Kubernetes v1\.23\.0\n$/ },
  { args: ["help"], code: 0, message: /^usage: .\/cox <verb>/ },
  { args: ["help", "up"], code: 0, message: /^Usage: .\/cox up / },
  { args: ["up", "--help"], code: 0, message: /^Usage: .\/cox up / },
  { args: ["down", "--purge", "--help"], code: 0, message: /^Usage: .\/cox down / },
  { args: ["test", "--help"], code: 0, message: /^Usage: .\/cox test / },
  { args: ["kubectl", "--help"], code: 0, message: /^Usage: .\/cox kubectl / },
  { args: ["run", "--help"], code: 0, message: /^Usage: .\/cox run / },
  { args: ["status"], code: 1, message: /^cox: no cluster was started here; start one with .\/cox up\n$/ },
  { args: ["logs", "-f"], code: 1, message: /^cox: no cluster was started here; start one with .\/cox up\n$/ },
  { args: ["kubectl", "get", "pods"], code: 1, message: /^cox: no cluster is running here; start one with .\/cox up\n$/ },
  { args: ["kubeconfig"], code: 1, message: /^cox: no cluster was started here/ },
  { args: ["list"], code: 0, message: /^cox: no cluster was started here/ },
  { args: ["down"], code: 0, message: /^cox: no cluster was started here; nothing to do\n$/ },
  { args: ["down", "--purg"], code: 2, message: /^cox: unknown option '--purg'; see .\/cox down --help\n$/ },
  { args: ["down", "b"], code: 2, message: /^cox: too many arguments for 'down'; see .\/cox down --help\n$/ },
  { args: ["status", "--nope"], code: 2, message: /^cox: unknown option '--nope'; see .\/cox status --help\n$/ },
  { args: ["list", "--nope=x"], code: 2, message: /^cox: unknown option '--nope'; see .\/cox list --help\n$/ },
  { args: ["logs", "--tail", "-1", "-f"], code: 1, message: /^cox: no cluster was started here/ },
  {
    args: ["up", "--kubelet-arg", "--v=4", "--nam", "b"],
    code: 2,
    message: /^cox: unknown option '--nam'; see .\/cox up --help\n$/,
  },
  { args: ["help", "nope"], code: 2, message: /^cox: unknown verb: nope; .\/cox help lists them\n$/ },
  { args: ["upp"], code: 2, message: /^cox: unknown verb: upp; .\/cox help lists them\n$/ },
]) {
  test(`${args.join(" ")} in a fresh clone says so and installs nothing`, async () => {
    const { code: ended, output } = await cox(args, env, program);
    assert.match(output, message);
    assert.equal(ended, code);
    assert.deepEqual(readdirSync(clone).sort(), ["cox", "package.json", "packages", "tools"]);
  });
}

test("up of another user in a clone of root's is refused with one line", async () => {
  const { code, output } = await cox(["up"], env, asNobody);
  assert.match(
    output,
    /^cox: cannot write to .*\/.cox \(the clone belongs to root; this is \S+\): work in a clone of your own\n$/,
  );
  assert.equal(code, 1);
});

test("up on a read-only file system is refused with one line", async () => {
  const script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$0/cox" "$@"';
  const { code, output } = await cox(["up"], env, ["unshare", "--mount", "sh", "-c", script, clone]);
  assert.match(
    output,
    /^cox: cannot write to .*\/.cox \(is its file system read-only, or full\?\): work in a clone that can be written\n$/,
  );
  assert.equal(code, 1);
});

test("a machine without npm gets a message that says what to install", async () => {
  const bin = mkdtempSync(join(tmpdir(), "bin-"));
  try {
    for (const name of ["sh", "dirname", "uname", "cat", "mkdir", "stat", "id"]) symlinkSync(`/bin/${name}`, join(bin, name));
    const { code, output } = await cox(["certs"], { ...env, PATH: bin }, program);
    assert.match(output, /^cox: (node|npm) is missing; install Node.js 18 or later with npm\n$/);
    assert.equal(code, 1);
  } finally {
    rmSync(bin, { recursive: true, force: true });
  }
});

test("a registry that is not there ends in one line with what to do", async (t) => {
  t.after(() => rmSync(join(clone, ".cox"), { recursive: true, force: true }));
  mkdirSync(join(clone, ".cox"), { recursive: true });
  const { code, output } = await cox(
    ["certs"],
    {
      ...env,
      npm_config_registry: "http://127.0.0.1:9/",
      npm_config_fetch_retries: "0",
      npm_config_cache: join(clone, ".cox", "npm"),
    },
    program,
  );
  assert.notEqual(code, 0);
  assert.match(output, /^cox: fetching Node .* \(some 60 MB from the npm registry\)\n/);
  assert.match(
    output,
    /\ncox: cannot fetch Node .*; check the network and npm's registry \(npm config get registry\), then try again\n$/,
  );
});

test("without a separate network namespace loopback up reports that loopback is down", async () => {
  const { code, output } = await cox(["up", "--name", "offline"], elsewhere, [
    "unshare",
    "--net",
    process.execPath,
    "-C",
    "cox-source",
    join(settings.root, "tools/dev-cluster/src/main.ts"),
  ]);
  assert.equal(output, "cox: the loopback interface is down; bring it up: ip link set lo up\n");
  assert.equal(code, 1);
});

test("a disk without room is named before anything is started", async () => {
  const script = 'mount -t tmpfs -o size=5m none /mnt && COX_STATE=/mnt/cluster exec "$@"';
  const main = [process.execPath, "-C", "cox-source", join(settings.root, "tools/dev-cluster/src/main.ts")];
  const { code, output } = await cox(["up"], elsewhere, ["unshare", "--mount", "sh", "-c", script, "sh", ...main]);
  assert.match(output, /^cox: the disk of \/mnt\/cluster has \d MiB left; 512 MiB are needed\n$/);
  assert.equal(code, 1);
});

/** Runs `./cox` as another user, who can access the clone wherever it is, even below /root. */
function otherUser(t: TestContext): (args: string[], env?: NodeJS.ProcessEnv) => ReturnType<typeof cox> {
  const reachable = mkdtempSync(join(tmpdir(), "cox-reachable-"));
  t.after(() => rmdirSync(reachable));
  chmodSync(reachable, 0o755);
  const { root } = settings;
  const node = process.execPath.startsWith(`${root}/`) ? join(reachable, relative(root, process.execPath)) : process.execPath;
  const script = 'mount --bind "$0" "$1" && cd "$1" && shift && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"';
  const main = [node, "-C", "cox-source", join(reachable, "tools/dev-cluster/src/main.ts")];
  return (args, given = process.env) => cox(args, given, ["unshare", "--mount", "sh", "-c", script, root, reachable, ...main]);
}

test("the cluster of root is not another user's", async (t) => {
  const run = otherUser(t);
  for (const args of [["status"], ["logs"], ["kubectl", "get", "pods"], ["kubeconfig"], ["down"]]) {
    const { code, output } = await run(args);
    assert.match(output, /^cox: the cluster in .* belongs to root, not to \S+; use it as root: sudo .\/cox \S+.*\n$/);
    assert.equal(code, 1);
  }
});

test("fake nodes need no root: pods run, log and answer commands, and nothing is left", async (t) => {
  const run = otherUser(t);
  const home = mkdtempSync(join(tmpdir(), "cox-home-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  chownSync(home, 65534, 65534);
  // Another user's cluster is not in root's registry, and must not take the default ports while tests beside this one expect them.
  const own = { ...env, ...(await freeSettings()), HOME: home, XDG_RUNTIME_DIR: home, COX_STATE: join(home, "state") };
  const succeeds = async (...args: string[]): Promise<string> => {
    const { code, output, stdout } = await run(args, own);
    assert.equal(code, 0, output);
    return stdout;
  };
  try {
    assert.match(await succeeds("up", "--fake-nodes=2"), /2 fake nodes are Ready/);
    await succeeds("kubectl", "create", "deployment", "web", "--image=nginx", "--replicas=2");
    await succeeds("kubectl", "wait", "--for=condition=Available", "deployment/web");
    assert.match(await succeeds("kubectl", "logs", "deployment/web"), /container nginx on the fake node node-[12]/);
    assert.equal(await succeeds("kubectl", "exec", "deployment/web", "--", "echo", "hello"), "hello\n");
    assert.match(await succeeds("status"), /^fake-nodes +running, pid \d+ +yes /m);
    const other = await run(["up", "--fake-nodes=3"], own);
    assert.match(other.output, /^cox: the cluster is running with another --fake-nodes; stop it first: .\/cox down\n$/);
  } finally {
    assert.match(await succeeds("down", "--purge"), /the cluster's files are removed/);
  }
});
