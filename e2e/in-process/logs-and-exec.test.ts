/** kubectl (SPDY) and a client library (WebSocket) against the kubelets of fake nodes. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { readSettings } from "@coxswain/dev-cluster/read-settings";
import { type Cluster, createCluster, type ExecRequest } from "@coxswain/testing";
import { Exec, KubeConfig, type V1Status } from "@kubernetes/client-node";

const folder = mkdtempSync(join(tmpdir(), "cox-streams-"));
const kubectlProgram = findKubectl(readSettings(join(import.meta.dirname, "../..")));
let cluster: Cluster;
let kubeconfig: string;
/** Ends the log of the pod `talker`. */
let hang: () => void = () => {};

async function exec({ command, stdin, stdout, stderr, tty, pod, container, signal }: ExecRequest) {
  const [program, ...args] = command;
  switch (program) {
    case "whoami":
      return `${pod.metadata.name}/${container}${tty ? " on a terminal" : ""}\n`;
    case "cat":
      for await (const chunk of stdin) await stdout(chunk as Buffer);
      return 0;
    case "fail":
      await stderr("it failed\n");
      return Number(args[0]);
    case "much":
      for (let left = Number(args[0]); left > 0; left -= 65_536) await stdout(Buffer.alloc(Math.min(left, 65_536), "x"));
      return { stderr: "done" };
    case "wait":
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      hang();
      return 0;
    default:
      throw new Error(`exec: ${JSON.stringify(program)}: executable file not found in $PATH`);
  }
}

before(async () => {
  cluster = await createCluster({
    controllers: false,
    pods: [
      { match: { name: "web" }, logs: ["first", "second", "third"], exec },
      { match: { name: "waiting" }, waits: { reason: "ImagePullBackOff" } },
      { match: { name: "ending" }, logs: "all\nof it\n", ends: { after: "300ms" } },
      {
        match: { name: "talker" },
        logs: async function* ({ container, signal }) {
          yield `hello from ${container}`;
          yield "again";
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          hang();
        },
      },
    ],
  });
  kubeconfig = join(folder, "kubeconfig");
  writeFileSync(kubeconfig, await cluster.kubeconfig());
  for (const name of ["web", "waiting", "ending", "talker", "plain"]) {
    const containers = (name === "web" ? ["main", "side"] : ["main"]).map((container) => ({ name: container, image: "i" }));
    const spec = { ...(name === "ending" && { restartPolicy: "Never" }), containers };
    await cluster.client.create<Pod>(pods, { metadata: { name, namespace: "default" }, spec });
  }
  for (const name of ["web", "talker"]) await cluster.eventually<Pod>(pods, { namespace: "default", name }, isRunning);
});
after(async () => {
  rmSync(folder, { recursive: true });
  await cluster?.stop();
});

const isRunning = ({ status }: Pod): boolean => status?.phase === "Running";

async function kubectl(args: readonly string[], input?: string) {
  const child = spawn(await kubectlProgram, ["--kubeconfig", kubeconfig, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(input);
  const ended = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await ended;
  return { stdout, stderr, code };
}

for (const { args, input, code = 0, stdout = "", stderr = /^$/ } of [
  { args: ["logs", "web", "-c", "main"], stdout: "first\nsecond\nthird\n" },
  { args: ["logs", "web", "-c", "main", "--tail=2"], stdout: "second\nthird\n" },
  { args: ["logs", "web", "-c", "main", "--limit-bytes=8"], stdout: "first\nse" },
  { args: ["logs", "web", "-c", "main", "--since-time=2100-01-01T00:00:00Z"] },
  { args: ["logs", "plain"] },
  { args: ["logs", "ending", "-f"], stdout: "all\nof it\n" },
  { args: ["logs", "waiting"], code: 1, stderr: /container "main" in pod "waiting" is waiting to start: ImagePullBackOff/ },
  { args: ["logs", "web", "-c", "main", "-p"], code: 1, stderr: /previous terminated container "main" in pod "web" not found/ },
  { args: ["exec", "web", "-c", "side", "--", "whoami"], stdout: "web/side\n" },
  { args: ["exec", "-i", "web", "-c", "main", "--", "cat"], input: "a\nb\n", stdout: "a\nb\n" },
  {
    args: ["exec", "web", "-c", "main", "--", "fail", "7"],
    code: 7,
    stderr: /^it failed\ncommand terminated with exit code 7\n$/,
  },
  { args: ["exec", "web", "-c", "main", "--", "nope"], code: 1, stderr: /executable file not found in \$PATH/ },
  { args: ["exec", "web", "-c", "main", "--", "much", "3000000"], stdout: "x".repeat(3_000_000), stderr: /^done$/ },
  { args: ["exec", "talker", "--", "ls"], code: 1, stderr: /the pods rule of default\/talker has no `exec`/ },
  { args: ["exec", "waiting", "--", "ls"], code: 1, stderr: /container not found \("main"\)/ },
]) {
  test(`kubectl ${args.join(" ")}`, async () => {
    const outcome = await kubectl(args, input);
    assert.match(outcome.stderr, stderr);
    assert.equal(outcome.stdout, stdout);
    assert.equal(outcome.code, code);
  });
}

test("kubectl logs --timestamps has the container's start", async () => {
  const { status } = await cluster.client.get<Pod>(pods, { namespace: "default", name: "web" });
  const started = status?.containerStatuses?.[0]?.state?.running?.startedAt as string;
  const { stdout } = await kubectl(["logs", "web", "-c", "main", "--timestamps", "--tail=1"]);
  assert.equal(stdout, `${started.replace("Z", ".000000000Z")} third\n`);
});

test("following a log continues until the reader disconnects, which aborts the log function", async () => {
  const heard = new Promise<void>((resolve) => {
    hang = resolve;
  });
  const child = spawn(await kubectlProgram, ["--kubeconfig", kubeconfig, "logs", "-f", "talker"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let seen = "";
  for await (const chunk of child.stdout) {
    seen += chunk;
    if (seen === "hello from main\nagain\n") break;
  }
  child.kill();
  await heard;
});

test("a client in the process reads logs without a port", async () => {
  const { status, body } = await cluster.client.raw("GET", "/api/v1/namespaces/default/pods/web/log?container=main&tailLines=1");
  assert.deepEqual([status, body.toString()], [200, "third\n"]);
});

test("a silent node answers nothing", async () => {
  cluster.nodes.setSilent("node-1", true);
  const { status, body } = await cluster.client.raw("GET", "/api/v1/namespaces/default/pods/web/log?container=main");
  cluster.nodes.setSilent("node-1", false);
  assert.equal(status, 500);
  assert.match(body.toString(), /no route to host/);
});

/** By the client library. */
async function execBy(command: string[], { input, tty = false }: { input?: string; tty?: boolean } = {}) {
  const config = new KubeConfig();
  config.loadFromString(await cluster.kubeconfig());
  const [out, err] = [new PassThrough(), new PassThrough()];
  const stdin = input === undefined ? null : new PassThrough();
  const texts = [text(out), text(err)];
  const status = await new Promise<V1Status>((resolve, reject) => {
    new Exec(config).exec("default", "web", "main", command, out, err, stdin, tty, resolve).then((socket) => {
      if (input !== undefined) stdin?.write(input);
      socket.on("close", () => {
        out.end();
        err.end();
      });
    }, reject);
  });
  return { status, texts: await Promise.all(texts) };
}

test("a client library runs commands over a WebSocket", async () => {
  assert.deepEqual(await execBy(["whoami"], { tty: true }), {
    status: { metadata: {}, status: "Success" },
    texts: ["web/main on a terminal\n", ""],
  });
  const { status, texts } = await execBy(["fail", "3"]);
  assert.deepEqual(
    [status.status, status.reason, status.details?.causes],
    ["Failure", "NonZeroExitCode", [{ reason: "ExitCode", message: "3" }]],
  );
  assert.deepEqual(texts, ["", "it failed\n"]);
});

test("a command hears that its client is gone", async () => {
  const heard = new Promise<void>((resolve) => {
    hang = resolve;
  });
  const config = new KubeConfig();
  config.loadFromString(await cluster.kubeconfig());
  const socket = await new Exec(config).exec("default", "web", "main", ["wait"], new PassThrough(), null, null, false);
  (socket as { terminate?: () => void }).terminate?.();
  await heard;
});
