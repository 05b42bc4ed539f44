import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { importImages, type Machine, whyNoMachine } from "./machine.ts";
import { type Network, newNetwork } from "./network.ts";

const admin = "/etc/kubernetes/admin.conf";
/** The archive of the machines, and another one of a later version, as its programs report it. */
const coxswain = "/opt/coxswain/bin/coxswain";
const next = "/opt/next";
const nextCoxswain = `${next}/bin/coxswain`;
const minutes = (n: number): number => n * 60_000;
const skip = whyNoMachine() ?? (process.env["COX_TEST_LONG"] === undefined ? "a long form: COX_TEST_LONG" : undefined);

describe("a control plane and a node get another version and the earlier one again", { skip }, () => {
  let network: Network;
  let first: Machine;
  let node: Machine;
  const kubectl = (...args: string[]) => first.kubectl(admin, ...args);
  const versions = async (): Promise<string> =>
    kubectl("get", "nodes", "--output=jsonpath={range .items[*]}{.metadata.name}={.status.nodeInfo.kubeletVersion} {end}");
  const whenVersions = (want: string) =>
    waitFor(async () => (await versions()).trim() === want, { retry: hasExitCode, timeoutMs: minutes(2), what: want });
  /** Names and container IDs: both change when a pod or container is another one. */
  const containers = (): Promise<string> =>
    kubectl(
      "get",
      "pods",
      "--output=jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].containerID}{'\\n'}{end}",
    );

  before(async () => {
    network = await newNetwork();
    [first, node] = await Promise.all([network.boot("m1", 11), network.boot("n1", 12)]);
    for (const machine of [first, node])
      await machine.run(
        "sh",
        "-ec",
        `mkdir ${next} && cp -a /opt/coxswain/bin /opt/coxswain/lib /opt/coxswain/systemd ${next}
         ln -s /opt/coxswain/libexec ${next}/libexec
         sed -i 's/v1\\.23\\.0/v1.23.1/g' ${next}/lib/*.js
         echo 'Coxswain 0.1.1, Kubernetes v1.23.1' >${next}/VERSION`,
      );
    await first.run(coxswain, "init");
    const line = (await first.run("coxswain", "token", "create", "--print-join-command")).trim().split(" ");
    await node.run(coxswain, ...line.slice(1));
    await importImages(node);
    await kubectl("create", "deployment", "web", "--image=busybox:1.35", "--replicas=2", "--", "sleep", "3600");
    await kubectl("wait", "--for=condition=Available", "--timeout=180s", "deployment/web");
  });
  after(() => network?.remove());

  test("plan lists versions and changes nothing; a kubelet is not upgraded before its API server", async () => {
    const plan = await first.run(nextCoxswain, "upgrade", "plan");
    assert.match(plan, /^archive of this machine +0\.1\.0 +0\.1\.1$/m);
    assert.match(plan, /^kube-apiserver 10\.111\.0\.11:6443 +v1\.23\.0 +v1\.23\.1$/m);
    assert.match(plan, /^kubelet of n1 +v1\.23\.0 +v1\.23\.1$/m);
    assert.match(plan, /\/opt\/next\/bin\/coxswain upgrade apply/);
    assert.match(
      await first.run(nextCoxswain, "upgrade", "apply", "--dry-run"),
      /^\[kube-apiserver\] would restart kube-apiserver$/m,
    );
    assert.equal(await first.run("readlink", "/usr/bin/kubelet"), "/opt/coxswain/bin/kubelet\n");
    await assert.rejects(node.run(nextCoxswain, "upgrade", "apply"), /not part of the control plane: run coxswain upgrade node/);
  });

  test("a failed upgrade is undone: the machine works as before, and reports it", async () => {
    await first.run(
      "sh",
      "-c",
      `mv ${next}/lib/kube-scheduler.js /root && echo 'process.exit(1)' >${next}/lib/kube-scheduler.js`,
    );
    await assert.rejects(
      first.run(nextCoxswain, "upgrade", "apply", "--timeout=20s"),
      /kube-scheduler: waited 20s for kube-scheduler to work; journalctl --unit kube-scheduler\n.*this machine has 0\.1\.0 again/s,
    );
    await first.run("mv", "/root/kube-scheduler.js", `${next}/lib`);
    assert.equal(await first.run("readlink", "/usr/bin/kube-apiserver"), "/opt/coxswain/bin/kube-apiserver\n");
    assert.match(await kubectl("version", "--output=json"), /"gitVersion": "v1\.23\.0"[^}]*\}\s*\}\s*$/);
    await whenVersions("m1=v1.23.0 n1=v1.23.0");
  });

  test("apply and node bring the version up; pods stay, and flags of the machine too", async () => {
    const pods = await containers();
    const address = "--advertise-address=10.111.0.11";
    assert.match(await first.run("cat", "/etc/systemd/system/kube-apiserver.service"), new RegExp(address));
    await first.run(nextCoxswain, "upgrade", "apply");
    assert.match(await first.run("cat", "/etc/systemd/system/kube-apiserver.service"), new RegExp(address));
    assert.match(await first.run(nextCoxswain, "upgrade", "apply"), /^\[kubelet\] nothing to do$/m);
    await whenVersions("m1=v1.23.1 n1=v1.23.0");
    await node.run(nextCoxswain, "upgrade", "node");
    await whenVersions("m1=v1.23.1 n1=v1.23.1");
    assert.equal(await containers(), pods);
  });

  test("the way back: nodes with their pods drained first, then the control plane", async () => {
    await kubectl("run", "alone", "--image=busybox:1.35", "--", "sleep", "3600");
    await kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/alone");
    await assert.rejects(node.run(coxswain, "upgrade", "node", "--drain"), /pod default\/alone has no controller/);
    await kubectl("delete", "pod", "alone", "--now");
    const pods = await containers();
    const done = await node.run(coxswain, "upgrade", "node", "--drain");
    assert.match(done, /^\[drain\] evict pod default\/web-/m);
    await whenVersions("m1=v1.23.1 n1=v1.23.0");
    await first.run(coxswain, "upgrade", "apply");
    await whenVersions("m1=v1.23.0 n1=v1.23.0");
    await kubectl("wait", "--for=condition=Available", "--timeout=180s", "deployment/web");
    const now = await containers();
    for (const line of pods.trim().split("\n")) assert.ok(!now.includes(line), `${line} was evicted`);
    assert.equal(await kubectl("get", "node", "n1", "--output=jsonpath={.spec.unschedulable}"), "");
  });
});
