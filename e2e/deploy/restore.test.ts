import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { MachineCluster, minutes } from "./cluster.ts";
import { whyNoMachine } from "./machine.ts";

const skip = whyNoMachine() ?? (process.env["COX_TEST_LONG"] === undefined ? "a long form: COX_TEST_LONG" : undefined);
const folder = "/var/lib/coxswain/etcd-snapshots";
const snapshot = "/root/snapshot.db";
const keyFile = "/root/snapshot.key";

describe("etcd is restored on one and on three machines, the same ones and new ones", { skip }, () => {
  let cluster: MachineCluster;
  /** A revision that the snapshot does not have. */
  let lostRevision: string;
  /** Pods with their containers, and when n1 became ready, before the first restore. */
  let kept: string;
  let readySince: string;
  const run = (name: string, ...command: string[]) => cluster.machine(name).run(...(command as [string]));
  const pods = (by: string, app: string): Promise<string> =>
    cluster.kubectl(
      by,
      "get",
      "pods",
      `--selector=app=${app}`,
      "--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].containerID} {.metadata.deletionTimestamp}{'\\n'}{end}",
    );
  const readyTime = (by: string): Promise<string> =>
    cluster.kubectl(by, "get", "node", "n1", "--output=jsonpath={.status.conditions[?(@.type=='Ready')].lastTransitionTime}");
  const programs = (): Promise<string> => run("n1", "systemctl", "show", "--property=MainPID", "kubelet", "coxswain-services");
  const tasks = async (): Promise<number> =>
    (await run("n1", "ctr", "-n", "k8s.io", "tasks", "list", "--quiet")).trim().split("\n").length;
  const deploy = async (by: string, name: string): Promise<void> => {
    await cluster.kubectl(by, "create", "deployment", name, "--image=busybox:1.35", "--replicas=2", "--", "httpd", "-f");
    await cluster.kubectl(by, "wait", "--for=condition=Available", "--timeout=180s", `deployment/${name}`);
  };
  const whenServed = (by: string) =>
    waitFor(async () => (await cluster.kubectl(by, "get", "--raw", "/readyz")) === "ok", {
      timeoutMs: minutes(2),
      retry: hasExitCode,
      what: `the API server of ${by}`,
    });

  before(async () => {
    cluster = await MachineCluster.start();
    await cluster.boot("m1", "m2", "m3", "n1");
    await cluster.init("m1");
    await cluster.joinControlPlane("m1", "m2", "m3");
    await cluster.joinNodes("m1", "n1");
    await cluster.whenReady("m1", "m1", "m2", "m3", "n1");
    await deploy("m1", "kept");
    await cluster.machine("m1").write(keyFile, randomBytes(32).toString("hex"));
  });
  after(() => cluster?.remove());

  test("the timer's snapshots are sealed and whole, and the newest ones are kept", async () => {
    const unit = "coxswain-etcd-snapshot";
    await run("m1", "coxswain", "etcd", "snapshot", "schedule", "--on-calendar=*:*:0/2", "--keep=2", `--key-file=${keyFile}`);
    await run("m1", "mkdir", "-p", `/etc/systemd/system/${unit}.timer.d`);
    await cluster
      .machine("m1")
      .write(`/etc/systemd/system/${unit}.timer.d/often.conf`, "[Timer]\nRandomizedDelaySec=0\nAccuracySec=100ms\n");
    await run("m1", "sh", "-c", `systemctl daemon-reload && systemctl restart ${unit}.timer`);
    const files = async (): Promise<string[]> =>
      (await run("m1", "sh", "-c", `ls ${folder} | grep 'db$'`)).trim().split("\n").toSorted();
    const [oldest = ""] = await waitFor(files, { timeoutMs: minutes(1), retry: hasExitCode, what: "a snapshot" });
    await waitFor(async () => !(await files()).includes(oldest), { timeoutMs: minutes(2), what: "the oldest to be removed" });
    await run("m1", "coxswain", "etcd", "snapshot", "schedule", "--remove");
    await waitFor(async () => (await run("m1", "systemctl", "show", "--value", "-p", "ActiveState", unit)) !== "activating\n", {
      what: "the last one to end",
    });
    const left = await files();
    assert.ok(left.length >= 2 && left.length <= 3, left.join());
    const newest = `${folder}/${left.at(-1)}`;
    await assert.rejects(run("m1", "coxswain", "etcd", "snapshot", "verify", newest), /is encrypted: pass --key-file/);
    const verified = await run("m1", "coxswain", "etcd", "snapshot", "verify", newest, `--key-file=${keyFile}`);
    assert.match(verified, /is whole: \d+ bytes, sealed/);
  });

  test("after a snapshot much is written that it does not have", async () => {
    await run("m1", "coxswain", "etcd", "snapshot", "save", snapshot, `--key-file=${keyFile}`);
    kept = await pods("m1", "kept");
    readySince = await readyTime("m1");
    for (const path of [snapshot, keyFile]) for (const name of ["m2", "m3"]) cluster.copy(path, "m1", name);
    // More revisions than are written after the restore until the watch is tried.
    const items = Array.from({ length: 3_000 }, (_, i) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `lost-${i}` },
    }));
    await cluster.machine("m1").write("/root/lost.json", JSON.stringify({ apiVersion: "v1", kind: "List", items }));
    await cluster.kubectl("m1", "create", "--filename", cluster.machine("m1").path("/root/lost.json"));
    await deploy("m1", "lost");
    lostRevision = JSON.parse(await cluster.kubectl("m1", "get", "--raw", "/api/v1/namespaces")).metadata
      .resourceVersion as string;
  });

  /** What has to hold after each restore. */
  const checkRestored = async (by: string, number: number, others: readonly string[] = []): Promise<void> => {
    const before = await programs();
    const begun = Date.now();
    for (const name of [by, ...others]) {
      await whenServed(name);
      await assert.rejects(
        cluster.kubectl(name, "get", "--raw", `/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=${lostRevision}`),
        /Too large resource version/,
      );
    }
    await deploy(by, `after-${number}`);
    assert.equal(
      await cluster.kubectl(by, "get", "deployments", "--output=name"),
      `deployment.apps/after-${number}\ndeployment.apps/kept\n`,
    );
    // coxswain-services of the node knows what is new, too.
    await cluster.kubectl(by, "expose", "deployment", `after-${number}`, "--port=80");
    const ip = await cluster.kubectl(by, "get", "service", `after-${number}`, "--output=jsonpath={.spec.clusterIP}");
    await waitFor(
      () => run("n1", "curl", "--silent", "--output", "/dev/null", "--max-time", "5", `http://${ip}/`).then(() => true),
      {
        timeoutMs: minutes(1),
        retry: hasExitCode,
        what: "the new Service to answer",
      },
    );
    // Of each pod that is left the sandbox and the container; those whose deployment is gone are stopped.
    await waitFor(async (seen) => seen(await tasks()) === 2 * 4, { timeoutMs: minutes(2), what: "the lost pods to be stopped" });
    // Longer than the node lifecycle controller's grace period after it saw the old leases.
    await waitFor(
      async () => {
        const path = "--output=jsonpath={.spec.renewTime}";
        const renewed = await cluster.kubectl(by, "get", "lease", "--namespace=kube-node-lease", "n1", path);
        return Date.parse(renewed) > begun + 60_000;
      },
      { timeoutMs: minutes(3), intervalMs: 1_000, retry: hasExitCode, what: "n1 to renew its lease for a minute" },
    );
    assert.equal(await pods(by, "kept"), kept);
    assert.equal(await readyTime(by), readySince);
    assert.equal(await programs(), before, "kubelet and coxswain-services of the node go on");
  };
  const peers = (...names: string[]): string => names.map((name) => `${name}=https://${cluster.address(name)}:2380`).join(",");
  const restoreTogether = async (...names: string[]): Promise<void> => {
    for (const name of names) await run(name, "systemctl", "stop", "kube-apiserver", "etcd");
    for (const name of names) {
      const flags = [`--key-file=${keyFile}`, "--force", `--initial-cluster=${peers(...names)}`];
      await run(name, "coxswain", "etcd", "snapshot", "restore", snapshot, ...flags);
    }
  };
  const members = async (by: string): Promise<string[]> =>
    [...(await run(by, "coxswain", "etcd", "members")).matchAll(/^\w+ +(\w+) +(leader|follower) /gm)]
      .map(([, name = ""]) => name)
      .toSorted();

  test("three members on their machines", async () => {
    await restoreTogether("m1", "m2", "m3");
    await checkRestored("m1", 1, ["m2", "m3"]);
    assert.deepEqual(await members("m3"), ["m1", "m2", "m3"]);
  });

  test("one member on its machine; the other machines join again", async () => {
    await assert.rejects(
      run("m1", "coxswain", "etcd", "snapshot", "restore", snapshot, `--key-file=${keyFile}`),
      /confirm with --force/,
    );
    for (const name of ["m2", "m3"]) await run(name, "systemctl", "stop", "kube-apiserver", "etcd");
    await run("m1", "coxswain", "etcd", "snapshot", "restore", snapshot, `--key-file=${keyFile}`, "--force");
    await checkRestored("m1", 2);
    for (const name of ["m2", "m3"]) await run(name, "coxswain", "reset", "--force");
    await cluster.joinControlPlane("m1", "m2", "m3");
    await cluster.whenReady("m1", "m2", "m3");
    assert.deepEqual(await members("m2"), ["m1", "m2", "m3"]);
  });

  test("one member on a new machine, with the authorities that were kept; the node is told its address", async () => {
    await cluster.boot("m4");
    for (const path of [snapshot, keyFile]) cluster.copy(path, "m1", "m4");
    await run("m4", "mkdir", "-p", "/etc/kubernetes/pki/etcd");
    for (const name of ["ca", "front-proxy-ca", "etcd/ca"])
      for (const kind of ["crt", "key"]) cluster.copy(`/etc/kubernetes/pki/${name}.${kind}`, "m1", "m4");
    for (const kind of ["pub", "key"]) cluster.copy(`/etc/kubernetes/pki/sa.${kind}`, "m1", "m4");
    for (const name of ["m1", "m2", "m3"]) await cluster.kill(name);
    await cluster.init("m4");
    await run("m4", "coxswain", "etcd", "snapshot", "restore", snapshot, `--key-file=${keyFile}`, "--force");
    await run(
      "n1",
      "sh",
      "-c",
      `echo ${cluster.address("m4")}:6443 >/var/lib/coxswain/api-servers && systemctl restart coxswain-services`,
    );
    await whenServed("m4");
    await cluster.kubectl("m4", "delete", "node", "m1", "m2", "m3");
    await cluster.whenReady("m4", "m4", "n1");
    await cluster.init("m4");
    await checkRestored("m4", 3);
  });

  test("three members on new machines", async () => {
    await cluster.boot("m5", "m6");
    await cluster.joinControlPlane("m4", "m5", "m6");
    for (const path of [snapshot, keyFile]) for (const name of ["m5", "m6"]) cluster.copy(path, "m4", name);
    await restoreTogether("m4", "m5", "m6");
    await whenServed("m4");
    await cluster.kubectl("m4", "delete", "node", "m1", "m2", "m3");
    await cluster.whenReady("m4", "m4", "m5", "m6", "n1");
    await checkRestored("m4", 4, ["m5", "m6"]);
    assert.deepEqual(await members("m5"), ["m4", "m5", "m6"]);
  });
});
