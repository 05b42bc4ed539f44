import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { checkServices } from "./cluster-services.ts";
import { diagnose } from "./diagnose.ts";
import { bootMachine, importImages, type Machine, whyNoMachine } from "./machine.ts";

const controlPlane = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
const units = [...controlPlane, "kubelet", "coxswain-services"];

describe("the shipped units under a real systemd", { skip: whyNoMachine() }, () => {
  let machine: Machine;
  const kubectl = (...args: string[]) => machine.kubectl("/etc/kubernetes/admin.conf", ...args);
  const active = (unit: string) => machine.run("systemctl", "is-active", unit).then((text) => text.trim() === "active");
  const property = async (unit: string, name: string) =>
    (await machine.run("systemctl", "show", "--value", "-p", name, unit)).trim();
  const nodeIsReady = async (): Promise<boolean> => /^machine +Ready /m.test(await kubectl("get", "nodes"));

  before(async () => {
    machine = await bootMachine({ units: ["etcd.service", "containerd.service", ...units.map((unit) => `${unit}.service`)] });
  });
  after(() => machine?.kill());

  test("all of them start in their order and the node gets ready", async () => {
    for (const unit of units)
      await waitFor(() => active(unit), { timeoutMs: 180_000, retry: hasExitCode, what: `${unit} to be active` });
    await waitFor(nodeIsReady, { timeoutMs: 180_000, retry: hasExitCode, what: "a ready node" });
  });

  test("systemd finds nothing wrong with them and little to attack in the control plane", async () => {
    assert.equal(await machine.run("systemd-analyze", "verify", ...units.map((unit) => `${unit}.service`)), "");
    await machine.run("systemd-analyze", "security", "--threshold=60", "coxswain-services");
    for (const unit of controlPlane) await machine.run("systemd-analyze", "security", "--threshold=20", unit);
  });

  test("the daemons run as their own users, with the flags of their environment files", async () => {
    const line = await machine.run("ps", "-C", "node,node-MainThread", "-o", "user:30=,args=");
    for (const unit of controlPlane) assert.match(line, new RegExp(`^${unit} .*/lib/${unit}\\.js `, "m"));
    assert.match(line, /^kube-scheduler .* --secure-port=10359 --v=1$/m);
    assert.match(line, /^root .*\/lib\/coxswain-services\.js .* --node-name=machine$/m);
    assert.match(line, /^root .*\/lib\/kubelet\.js .* --hostname-override=machine /m);
  });

  test("a pod runs", async () => {
    await importImages(machine);
    await waitFor(() => kubectl("get", "serviceaccount", "default"), {
      timeoutMs: 180_000,
      retry: hasExitCode,
      what: "the default service account",
    });
    await kubectl("run", "one", "--image=busybox:1.35", "--restart=Never", "--", "sleep", "3600");
    await kubectl("wait", "--for=condition=Ready", "--timeout=180s", "pod/one");
    assert.equal(await kubectl("exec", "one", "--", "echo", "hello"), "hello\n");
  });

  test("a Service answers, a name resolves, a claim gets a volume, and kubectl top knows the node", async () => {
    await machine.run("coxswain-services", "--apply-rights", "--kubeconfig=/etc/kubernetes/admin.conf");
    await checkServices(kubectl, machine, "machine");
  });

  test("the doctor finds nothing, then what is wrong, and says so by its exit code", async () => {
    assert.deepEqual(await diagnose(machine), { code: 0, findings: [] });
    await kubectl("cordon", "machine");
    assert.deepEqual(await diagnose(machine), { code: 1, findings: ["notice nodes: node machine is cordoned"] });
    await kubectl("uncordon", "machine");
  });

  test("a daemon that is killed comes back, and nothing is lost", async () => {
    for (const unit of units) await machine.run("systemctl", "kill", "--signal=KILL", "--kill-who=main", unit);
    const isBack = async (unit: string) => (await property(unit, "NRestarts")) === "1" && (await active(unit));
    for (const unit of units)
      await waitFor(() => isBack(unit), { timeoutMs: 180_000, retry: hasExitCode, what: `${unit} to be active again` });
    await waitFor(nodeIsReady, { timeoutMs: 180_000, retry: hasExitCode, what: "a ready node" });
    assert.match(await kubectl("get", "pod", "one"), /^one +1\/1 +Running +0 /m);
  });

  test("a daemon that is stopped ends well", async () => {
    for (const unit of units.toReversed()) {
      await machine.run("systemctl", "stop", unit);
      assert.equal(await property(unit, "Result"), "success", unit);
      assert.equal(await property(unit, "ExecMainStatus"), "0", unit);
    }
  });
});
