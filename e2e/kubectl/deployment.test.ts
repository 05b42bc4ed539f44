import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { getJson, kubectl, outcomeOf, printed, startInTerminal, startKubectl, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { podsOf, readyPods } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

/** Exits at once on SIGTERM; httpd as process 1 of its container would run until the end of the grace period. */
const serve =
  "trap 'exit 0' TERM; mkdir -p /www; echo hello from $(hostname) > /www/index.html; echo started; httpd -f -p 8080 -h /www & wait";
const image = async (namespace: string): Promise<string> =>
  (await kubectl("get", "deployment", "web", "-n", namespace, "-o", "jsonpath={.spec.template.spec.containers[0].image}")).trim();

/** A Deployment named web with three pods that serve on port 8080. */
async function webDeployment(namespace: string, replicas = 3): Promise<void> {
  await kubectl(
    "create",
    "deployment",
    "web",
    "-n",
    namespace,
    "--image=busybox:1.35",
    `--replicas=${replicas}`,
    "--",
    "sh",
    "-c",
    serve,
  );
  await readyPods(namespace, "app=web", replicas);
}

/** Events are written after what they report, and the kubelet's are rate-limited. */
const eventsOf = (kind: string, name: string, namespace: string, wanted: readonly RegExp[]): Promise<true> =>
  waitFor(`the events of ${kind} ${name}`, async () => {
    const described = await kubectl("describe", kind, name, "-n", namespace);
    return wanted.every((event) => event.test(described));
  });

test("a created Deployment runs three pods with addresses, and every reading command shows them", async (t) => {
  const namespace = await newNamespace(t, "web");
  await webDeployment(namespace);
  const pods = await podsOf(namespace, "app=web");
  assert.equal(new Set(pods.map((pod) => pod.status.podIP)).size, 3, "each pod has a separate address");
  const wide = await kubectl("get", "pods", "-n", namespace, "-o", "wide");
  assert.match(wide, /^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES$/m);
  assert.equal(wide.match(/1\/1 +Running +0 +[\dms]+ +10\.\d+\.\d+\.\d+ +\S+ +<none> +<none>/g)?.length, 3, wide);
  assert.match(await kubectl("get", "deployment", "web", "-n", namespace), /web +3\/3 +3 +3 +[\dms]+/);
  await eventsOf("deployment", "web", namespace, [
    /ScalingReplicaSet +\S+ +deployment-controller +Scaled up replica set web-[0-9a-z]+ to 3/,
  ]);
  const wanted = [/Successfully assigned/, /Started container busybox/];
  await eventsOf("pod", pods[0]?.metadata.name ?? "", namespace, wanted);
  assert.match(await kubectl("get", "all", "-A"), /deployment\.apps\/web/);
});

test("logs, logs -f, exec with a terminal, cp and port-forward reach the container", async (t) => {
  const namespace = await newNamespace(t, "reach");
  await webDeployment(namespace, 1);
  const [pod] = await podsOf(namespace, "app=web");
  const name = pod?.metadata.name ?? "";
  await waitFor("its log", async () => (await kubectl("logs", name, "-n", namespace)) === "started\n");

  const follower = startKubectl(["logs", "-f", name, "-n", namespace]);
  t.after(() => follower.kill());
  await printed(follower, /started/);
  const later = printed(follower, /a later line/);
  await kubectl("exec", name, "-n", namespace, "--", "sh", "-c", "echo a later line > /proc/1/fd/1");
  await later;

  assert.equal(await kubectl("exec", name, "-n", namespace, "--", "hostname"), `${name}\n`);
  assert.equal(await kubectl("exec", "-i", name, "-n", namespace, "--", "cat", { input: "through stdin" }), "through stdin");
  const failed = await tryKubectl(["exec", name, "-n", namespace, "--", "sh", "-c", "echo oops >&2; exit 7"]);
  assert.equal(failed.code, 7);
  assert.match(failed.stderr, /oops/);
  const terminal = startInTerminal(["exec", "-it", name, "-n", namespace, "--", "sh"]);
  t.after(() => terminal.kill());
  const greeting = printed(terminal, /terminal is \/dev\/pts/);
  terminal.stdin?.write("echo terminal is $(tty)\n");
  await greeting;
  const ended = outcomeOf(terminal);
  terminal.stdin?.write("exit 3\n");
  assert.equal((await ended).code, 3);

  const folder = mkdtempSync(join(tmpdir(), "cox-cp-"));
  writeFileSync(join(folder, "there"), "x".repeat(200_000));
  await kubectl("cp", join(folder, "there"), `${namespace}/${name}:/tmp/there`);
  await kubectl("cp", `${namespace}/${name}:/tmp/there`, join(folder, "back"));
  assert.equal(readFileSync(join(folder, "back"), "utf8").length, 200_000);

  const forward = startKubectl(["port-forward", name, "-n", namespace, ":8080"]);
  t.after(() => forward.kill());
  const port = /Forwarding from 127\.0\.0\.1:(\d+)/.exec(await printed(forward, /Forwarding from 127\.0\.0\.1:\d+/))?.[1];
  for (let attempt = 0; attempt < 3; attempt++)
    assert.equal(await fetchText(`http://127.0.0.1:${port}/`), `hello from ${name}\n`);
});

test("a client that disconnects during exec closes the input of the command", async (t) => {
  const namespace = await newNamespace(t, "gone");
  await webDeployment(namespace, 1);
  const [pod] = await podsOf(namespace, "app=web");
  const name = pod?.metadata.name ?? "";
  const processes = () => kubectl("exec", name, "-n", namespace, "--", "ps", "-o", "args");
  const client = startKubectl(["exec", "-i", name, "-n", namespace, "--", "sh", "-c", "echo waiting; exec cat -"], true);
  await printed(client, /waiting/);
  await waitFor("the process has begun", async () => /^cat -$/m.test(await processes()));
  client.kill("SIGKILL");
  await waitFor("the process has ended with its input", async () => !/^cat -$/m.test(await processes()));
});

test("scale, set image, rollout status, history and undo move the pods", async (t) => {
  const namespace = await newNamespace(t, "roll");
  await webDeployment(namespace, 2);
  await kubectl("scale", "deployment", "web", "-n", namespace, "--replicas=4");
  await readyPods(namespace, "app=web", 4);
  await kubectl("scale", "deployment", "web", "-n", namespace, "--replicas=2");
  await readyPods(namespace, "app=web", 2);
  await kubectl("set", "image", "deployment/web", "-n", namespace, "busybox=busybox:1.36");
  assert.match(
    await kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=180s"),
    /successfully rolled out/,
  );
  const updated = await readyPods(namespace, "app=web", 2);
  assert.ok(updated.every((pod) => pod.spec.containers[0]?.image === "busybox:1.36"));
  assert.match(await kubectl("rollout", "history", "deployment/web", "-n", namespace), /^1 .*\n^2 /m);
  await kubectl("rollout", "undo", "deployment/web", "-n", namespace);
  assert.match(
    await kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=180s"),
    /successfully rolled out/,
  );
  assert.equal(await image(namespace), "busybox:1.35");
  await readyPods(namespace, "app=web", 2);
  assert.equal((await getJson<{ items: unknown[] }>("replicasets", "-n", namespace)).items.length, 2);
});

test("expose fills the Endpoints, and delete takes everything that was owned", async (t) => {
  const namespace = await newNamespace(t, "expose");
  await webDeployment(namespace, 2);
  await kubectl("expose", "deployment", "web", "-n", namespace, "--port=80", "--target-port=8080");
  const addresses = await waitFor("two addresses in the Endpoints", async () => {
    const listed = await kubectl("get", "endpoints", "web", "-n", namespace, "-o", "jsonpath={.subsets[*].addresses[*].ip}");
    return listed.split(" ").length === 2 && listed.split(" ");
  });
  assert.deepEqual(addresses.toSorted(), (await podsOf(namespace, "app=web")).map((pod) => pod.status.podIP).toSorted());
  await kubectl("delete", "deployment", "web", "-n", namespace);
  await waitFor(
    "ReplicaSets and pods are gone",
    async () => (await kubectl("get", "replicasets,pods", "-n", namespace, "-o", "name")) === "",
  );
});

test("get -w prints each change as it happens", async (t) => {
  const namespace = await newNamespace(t, "watch");
  const watch = startKubectl(["get", "configmaps", "-n", namespace, "-w", "--output-watch-events"]);
  t.after(() => watch.kill());
  await printed(watch, /ADDED +kube-root-ca\.crt/); // created in every namespace; from here on the watch is established
  const seen = printed(watch, /ADDED +one[\s\S]*MODIFIED +one[\s\S]*DELETED +one/);
  await kubectl("create", "configmap", "one", "-n", namespace, "--from-literal=a=1");
  await kubectl("patch", "configmap", "one", "-n", namespace, "-p", '{"data":{"b":"2"}}');
  await kubectl("delete", "configmap", "one", "-n", namespace);
  await seen;
  watch.kill();
  await outcomeOf(watch).catch(() => {});
});

function fetchText(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => resolve(text));
    }).on("error", reject);
  });
}
