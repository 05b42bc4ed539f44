import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";

/** Runs the kubelet until it exits. */
const kubelet = (...flags: string[]) => run(process.execPath, "-C", "cox-source", join(import.meta.dirname, "main.ts"), ...flags);

function run(program: string, ...args: string[]): Promise<{ code: number; text: string }> {
  return new Promise((resolve) => {
    execFile(program, args, (err, stdout, stderr) => {
      resolve({ code: err === null ? 0 : Number(err.code), text: stdout + stderr });
    });
  });
}

test("--help shows the kubelet's own defaults of feature gates", async () => {
  const { code, text } = await kubelet("--help");
  assert.equal(code, 0);
  for (const line of [
    "CPUManagerPolicyOptions=true|false (BETA - default=false)",
    "CSIMigrationAWS=true|false (BETA - default=false)",
    "TopologyAwareHints=true|false (BETA - default=true)",
  ])
    assert.ok(text.includes(line), line);
  assert.ok(!text.includes("ServerSideFieldValidation"));
});

test("the kubelet does not start with an unknown feature gate", async () => {
  const { code, text } = await kubelet("--feature-gates=ServerSideFieldValidation=true");
  assert.notEqual(code, 0);
  assert.match(text, /unrecognized feature gate: ServerSideFieldValidation/);
});

test("the kubelet names the fields of its configuration file that it does not know or use, and starts only with the lock file", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-kubelet-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const config = join(dir, "config.yaml");
  const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
  await writeFile(config, `${head}maxPodz: 3\nenableContentionProfiling: true\n`);
  const runtime = ["--container-runtime=remote", "--container-runtime-endpoint=unix:///run/none.sock"];
  const { code, text } = await kubelet(`--config=${config}`, `--lock-file=${join(dir, "none/lock")}`, ...runtime);
  assert.equal(code, 1);
  assert.match(text, /strict decoding error: unknown field \\"maxPodz\\"/);
  assert.match(text, /these fields of the configuration file have no effect yet" fields="?enableContentionProfiling/);
  assert.match(text, /^Error: .*none\/lock/m);
});

/** Arguments of `unshare` for a program that cannot change kernel parameters and has its own /var/log. */
const apart = (...program: string[]): string[] => {
  const mounts = ["mount -o bind /proc/sys /proc/sys", "mount -o remount,bind,ro /proc/sys", "mount -t tmpfs tmpfs /var/log"];
  return ["--mount", "sh", "-ec", `${mounts.join(" && ")} && exec "$@"`, "sh", ...program];
};

test("the kubelet does not start without the file of --kubeconfig", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async () => {
  const flags = ["--kubeconfig=/none/kubeconfig", "--make-iptables-util-chains=false", "--oom-score-adj=0"];
  const runtime = ["--container-runtime=remote", "--container-runtime-endpoint=unix:///run/none.sock"];
  const program = [process.execPath, "-C", "cox-source", join(import.meta.dirname, "main.ts"), ...flags, ...runtime];
  const { code, text } = await run("unshare", ...apart(...program));
  assert.equal(code, 1, text);
  assert.match(text, /^Error: invalid kubeconfig: stat \/none\/kubeconfig: no such file or directory$/m);
});

test("a kubelet that is told to stop while it starts ends once it has started", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-kubelet-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const lock = join(dir, "lock");
  const holder = spawn("flock", [lock, "cat"]);
  t.after(() => holder.kill());
  holder.stdin.write("held\n");
  await once(holder.stdout, "data");
  const flags = [
    ...["--container-runtime=remote", `--container-runtime-endpoint=unix://${dir}/none.sock`, `--lock-file=${lock}`],
    ...[`--root-dir=${join(dir, "kubelet")}`, `--cert-dir=${join(dir, "pki")}`, "--hostname-override=node1"],
    ...["--enable-server=false", "--read-only-port=0", "--healthz-port=0", "--fail-swap-on=false"],
    ...["--cgroups-per-qos=false", "--enforce-node-allocatable=", "--make-iptables-util-chains=false", "--oom-score-adj=0"],
  ];
  const child = spawn("unshare", apart(process.execPath, "-C", "cox-source", join(import.meta.dirname, "main.ts"), ...flags));
  t.after(() => child.kill("SIGKILL"));
  const ended = once(child, "exit", { signal: AbortSignal.timeout(60_000) });
  let text = "";
  const says = (what: string) =>
    waitFor((seen) => {
      assert.equal(child.exitCode, null, text);
      return seen(text).includes(what);
    });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  await says("Acquiring file lock");
  child.kill("SIGTERM");
  await says("received a signal, shutting down");
  holder.stdin.end();
  assert.deepEqual(await ended, [0, null], text);
  assert.match(text, /Started kubelet/);
});
