import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { withClusterLock } from "@coxswain/dev-cluster/lock";
import { logFile } from "@coxswain/dev-cluster/processes";
import { readSettings } from "@coxswain/dev-cluster/read-settings";
import type { Settings } from "@coxswain/dev-cluster/settings";
import { kubectl, printed, settings } from "../framework/kubectl.ts";
import { lookedAt, waitFor } from "../framework/wait-for.ts";
import { cox, elsewhere } from "./run-cox.ts";

/** Clusters next to the tests' own one, in its folder. */
const names = ["second", "third"];
const settingsOf = (name: string): Settings => readSettings(settings.root, elsewhere, name);
const down = (name: string) => cox(["down", "--name", name, "--purge"], elsewhere);
after(() => Promise.all(names.map(down)));

test("two clusters that start at the same moment beside a third share nothing, and all work", async () => {
  const ups = await Promise.all(names.map((name) => cox(["up", "--name", name], elsewhere)));
  for (const { code, output } of ups) assert.equal(code, 0, output);
  const all = [settings, ...names.map(settingsOf)];
  for (const values of [
    all.flatMap(({ ports }) => Object.values(ports).map(String)),
    all.flatMap(({ podCidr, serviceCidr }) => [podCidr, serviceCidr]),
    all.map(({ bridge }) => bridge),
  ])
    assert.equal(new Set(values).size, values.length, values.join(" "));

  for (const name of names) {
    const { code, output: findings } = await cox(["doctor", "--name", name], elsewhere);
    assert.deepEqual([code, findings.trim()], [0, "Nothing is wrong: 18 checks, no findings."]);
  }
  const { output } = await cox(["list"], elsewhere);
  for (const name of names)
    assert.match(output, new RegExp(`^${name} +running +https://127.0.0.1:${settingsOf(name).ports.apiserver} `, "m"));

  await Promise.all(
    names.map(async (name) => {
      const inCluster = (...args: string[]) => cox(["kubectl", "--name", name, ...args], elsewhere);
      const serve = `mkdir -p /www; echo hello from ${name} > /www/index.html; exec httpd -f -p 8080 -h /www`;
      await inCluster("run", "web", "--image=busybox:1.36", "--command", "--", "sh", "-c", serve);
      await inCluster("expose", "pod", "web", "--port=80", "--target-port=8080");
      const { stdout: address } = await inCluster("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}");
      await inCluster("run", "client", "--image=busybox:1.36", "--command", "--", "sleep", "1000");
      await waitFor("an answer through the cluster's own services", async () => {
        const answer = await inCluster("exec", "client", "--", "wget", "-q", "-O-", `http://${address}`);
        return answer.stdout === `hello from ${name}\n`;
      });
    }),
  );
});

test("flags are kept; a running cluster refuses others, and one with data refuses another network", async () => {
  const [name = ""] = names;
  const running = await cox(["up", "--name", name, "--kubelet-arg", "max-pods=42"], elsewhere);
  assert.equal(running.code, 1);
  assert.match(
    running.output,
    /^cox: the cluster is running with another --kubelet-arg; stop it first: .\/cox down --name second$/m,
  );
  assert.equal((await cox(["down", "--name", name], elsewhere)).code, 0);
  const network = await cox(["up", "--name", name, "--pod-network-cidr", "10.77.0.0/16"], elsewhere);
  assert.match(
    network.output,
    /^cox: --pod-network-cidr: the cluster's data were created with .*.\/cox down --purge --name second$/m,
  );
  const before = settingsOf(name);
  for (const args of [["--kubelet-arg", "max-pods=42"], []]) {
    const { code, output } = await cox(["up", "--name", name, ...args], elsewhere);
    assert.equal(code, 0, output);
    assert.deepEqual(settingsOf(name).ports, before.ports);
    await waitFor("the kubelet's flag shows in its node", async () => {
      const node = await cox(
        ["kubectl", "--name", name, "get", "nodes", "-o", "jsonpath={.items[*].status.capacity.pods}"],
        elsewhere,
      );
      return node.stdout === "42";
    });
    if (args.length > 0) assert.equal((await cox(["down", "--name", name], elsewhere)).code, 0);
  }
});

test("two clusters on one network are refused, and nothing is left of the second", async () => {
  const { code, output } = await cox(["up", "--name", "fourth", "--pod-network-cidr", settings.podCidr], elsewhere);
  assert.equal(code, 1, output);
  assert.match(
    output,
    /^cox: --pod-network-cidr: \S+ overlaps the pod network \S+ of cluster \S+ in .*; choose another, or leave the flag out/m,
  );
  assert.equal(existsSync(join(settings.state, "clusters", "fourth")), false);
});

test("load puts an image of an archive into the cluster, where a pod runs it without a registry", async (t) => {
  const archive = join(settings.state, "load-test.tar");
  t.after(() => cox(["kubectl", "delete", "pod", "loaded", "--now"]));
  const { imageArchive } = await import("@coxswain/images/oci");
  const { localImages } = await import("@coxswain/images/busybox");
  const [image] = localImages("/bin/busybox").filter((each) => each.names.some((name) => name.includes("busybox")));
  assert.ok(image);
  writeFileSync(archive, imageArchive({ ...image, names: ["example.com/loaded:1"] }));
  const { code, output } = await cox(["load", archive]);
  assert.equal(code, 0, output);
  assert.equal(output, "example.com/loaded:1\n");
  await kubectl("run", "loaded", "--image=example.com/loaded:1", "--command", "--", "sleep", "1000");
  await kubectl("wait", "pod/loaded", "--for=condition=Ready", "--timeout=120s");
  const refused = await cox(["load", join(settings.root, "README.md")]);
  assert.equal(refused.code, 1);
  assert.match(refused.output, /^cox: cannot load .*README.md: .*\n$/);
});

test("logs of all processes have the process's name before each line", async () => {
  const { code, output } = await cox(["logs", "--tail", "3"]);
  assert.equal(code, 0);
  for (const name of ["etcd", "containerd", "kube-apiserver", "kubelet"]) assert.match(output, new RegExp(`^${name} *\\| `, "m"));
});

test("logs -f prints new lines until it is interrupted", async (t) => {
  const follow = spawn(join(settings.root, "cox"), ["logs", "-f", "--tail", "0", "kube-apiserver", "kubelet"]);
  t.after(() => void follow.kill("SIGKILL"));
  const ended = once(follow, "exit");
  let output = "";
  for (const stream of [follow.stdout, follow.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk));
  const line = "a line of clusters.test.ts";
  await waitFor("the line to be printed", async () => {
    lookedAt(output);
    appendFileSync(logFile(settings, "kubelet"), `${line}\n`); // again and again: following begins at an unknown time
    return output.includes(`kubelet        | ${line}\n`);
  });
  follow.kill("SIGTERM");
  assert.deepEqual(await ended, [143, null]);
});

test("up and down wait for the process that works on the cluster, and name it", async () => {
  const name = "locked";
  const state = join(settings.state, "clusters", name);
  mkdirSync(join(state, "run"), { recursive: true }); // so that there is something to remove
  let patient: ChildProcess | undefined;
  await withClusterLock({ state, name }, "up", async () => {
    const impatient = await cox(["up", "--name", name, "--wait", "0"], elsewhere);
    assert.equal(impatient.code, 1, impatient.output);
    const holder = `./cox up (pid ${process.pid}, since `;
    assert.ok(impatient.output.startsWith(`cox: cluster locked is locked by ${holder}`), impatient.output);
    patient = spawn(join(settings.root, "cox"), ["down", "--name", name, "--purge"], { env: elsewhere });
    assert.ok((await printed(patient, /which works on cluster locked/)).startsWith(`cox: waiting for ${holder}`));
  });
  const [code] = await once(patient as ChildProcess, "exit");
  assert.equal(code, 0);
  assert.equal(existsSync(state), false);
});
