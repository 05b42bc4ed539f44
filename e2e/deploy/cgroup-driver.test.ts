import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { bootMachine, importImages, type Machine, whyNoMachine } from "./machine.ts";

const units = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "containerd", "kubelet"];

/** Kubelet and containerd both use the systemd cgroup driver, as with kubeadm. */
const configure = `
cat >>/etc/containerd/config.toml <<'X'
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
X
sed -i 's/^cgroupDriver: .*/cgroupDriver: systemd/' /var/lib/kubelet/config.yaml
printf '[Service]\\nRestartSec=1\\n' >/etc/systemd/system/kubelet.service.d/soon.conf`;

/** Test machines have no D-Bus daemon; systemd is reached through its private socket. */
const startBus = `
rm /etc/systemd/system/dbus.*
systemctl daemon-reload
systemctl start dbus.socket dbus.service`;

const unified = existsSync("/sys/fs/cgroup/cgroup.controllers");
const folder = (controller: string, path: string): string => `/sys/fs/cgroup/${unified ? "" : controller}${path}`;
const files = unified
  ? { cpu: "cpu.weight", quota: "cpu.max", memory: "memory.max" }
  : { cpu: "cpu.shares", quota: "cpu.cfs_quota_us", memory: "memory.limit_in_bytes" };

const parents = {
  guaranteed: "/kubepods.slice/kubepods-",
  burstable: "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-",
  besteffort: "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-",
};
type Class = keyof typeof parents;
const classes = Object.keys(parents) as Class[];

/** Each with the expected CPU weight of its slice, for cgroup v1 and v2. */
const pods = {
  guaranteed: { resources: { limits: { cpu: "100m", memory: "32Mi" } }, weight: unified ? 4 : 102 },
  burstable: { resources: { requests: { cpu: "200m" } }, weight: unified ? 8 : 204 },
  besteffort: { resources: {}, weight: unified ? 1 : 2 },
};

describe("pods below systemd's slices, with the driver systemd in the kubelet and in containerd", {
  skip: whyNoMachine(),
}, () => {
  let machine: Machine;
  const kubectl = (...args: string[]) => machine.kubectl("/etc/kubernetes/admin.conf", ...args);
  const ofPod = (name: string, field: string) => kubectl("get", "pod", name, "-o", `jsonpath={${field}}`);
  const sliceOf = async (name: Class): Promise<string> =>
    `${parents[name]}pod${(await ofPod(name, ".metadata.uid")).replaceAll("-", "_")}.slice`;
  const property = async (slice: string, name: string) =>
    (await machine.run("systemctl", "show", "--value", "-p", name, slice.replace(/^.*\//, ""))).trim();
  const read = async (controller: keyof typeof files, path: string) =>
    (await machine.run("cat", `${folder(controller === "quota" ? "cpu" : controller, path)}/${files[controller]}`)).trim();
  const podSlices = () => machine.run("systemctl", "list-units", "--all", "--plain", "--no-legend", "kubepods*-pod*.slice");
  const podFolders = () => machine.run("sh", "-c", "find /sys/fs/cgroup -name 'kubepods*-pod*' || true");
  const nodeIsReady = async () => /^machine +Ready /m.test(await kubectl("get", "nodes"));

  async function run(name: string, resources: object): Promise<void> {
    const containers = [{ name: "main", image: "busybox:1.35", command: ["sleep", "3600"], resources }];
    const spec = { terminationGracePeriodSeconds: 0, containers };
    await kubectl("run", name, "--image=busybox:1.35", `--overrides=${JSON.stringify({ spec })}`);
    await kubectl("wait", "--for=condition=Ready", "--timeout=180s", `pod/${name}`);
  }

  before(async () => {
    machine = await bootMachine({ units: ["etcd.service"] });
    await machine.shell(configure);
    // It starts listening a moment after its start.
    const start = () => machine.run("systemctl", "start", "--no-block", ...units).then(() => true);
    await waitFor(start, { timeoutMs: 180_000, retry: hasExitCode, what: "systemd to listen" });
    await waitFor(nodeIsReady, { timeoutMs: 180_000, retry: hasExitCode, what: "a ready node" });
    await importImages(machine);
    await waitFor(() => kubectl("get", "serviceaccount", "default"), {
      timeoutMs: 180_000,
      retry: hasExitCode,
      what: "the default service account",
    });
  });
  after(() => machine?.kill());

  for (const name of classes) {
    test(`a ${name} pod runs in scopes below a separate slice, which has its limits`, async () => {
      await run(name, pods[name].resources);
      const slice = await sliceOf(name);
      assert.equal(await property(slice, "ControlGroup"), slice);
      assert.equal(await property(slice, "ActiveState"), "active");
      assert.equal(await property(slice, unified ? "CPUWeight" : "CPUShares"), String(pods[name].weight));
      assert.equal(await read("cpu", slice), String(pods[name].weight));
      const id = (await ofPod(name, ".status.containerStatuses[0].containerID")).replace("containerd://", "");
      const scope = `${folder("memory", slice)}/cri-containerd-${id}.scope`;
      assert.match(await machine.run("cat", `${scope}/cgroup.procs`), /^\d+\n$/);
    });
  }

  test("a pod's slice has the limits that all its containers have, and kubepods.slice that of all pods", async () => {
    const slice = await sliceOf("guaranteed");
    assert.equal(await read("memory", slice), String(32 * 1024 ** 2));
    assert.match(await read("quota", slice), /^10000( 100000)?$/);
    assert.ok(Number(await read("memory", "/kubepods.slice")) > 0);
    assert.equal(
      await property("/kubepods.slice", unified ? "MemoryMax" : "MemoryLimit"),
      await read("memory", "/kubepods.slice"),
    );
    const burstable = "/kubepods.slice/kubepods-burstable.slice";
    await waitFor(async () => (await read("cpu", burstable)) === String(pods.burstable.weight), {
      timeoutMs: 180_000,
      retry: hasExitCode,
      what: "the class's weight",
    });
  });

  test("a systemd that starts anew has lost none of it, and makes more", async () => {
    const limit = await read("memory", "/kubepods.slice");
    await machine.run("systemctl", "daemon-reload");
    await machine.run("systemctl", "daemon-reexec");
    for (const name of classes) assert.equal(await read("cpu", await sliceOf(name)), String(pods[name].weight));
    assert.equal(await read("memory", "/kubepods.slice"), limit);
    await run("later", {});
    assert.equal((await podSlices()).trim().split("\n").length, 4);
  });

  test("a kubelet that is killed finds its pods, and takes away those that went without it", async () => {
    await machine.shell(startBus);
    const started = await Promise.all(classes.map((name) => ofPod(name, ".status.containerStatuses[0].containerID")));
    await machine.run("systemctl", "kill", "--signal=KILL", "--kill-who=main", "kubelet");
    await kubectl("delete", "pod", "later", "--force", "--grace-period=0");
    await waitFor(async () => (await property("kubelet.service", "NRestarts")) === "1", {
      timeoutMs: 180_000,
      retry: hasExitCode,
      what: "the kubelet",
    });
    const threeAreLeft = async () => (await podSlices()).trim().split("\n").length === 3;
    await waitFor(threeAreLeft, { timeoutMs: 180_000, retry: hasExitCode, what: "three slices" });
    await waitFor(nodeIsReady, { timeoutMs: 180_000, retry: hasExitCode, what: "a ready node" });
    for (const [i, name] of classes.entries()) {
      assert.equal(await ofPod(name, ".status.containerStatuses[0].containerID"), started[i]);
      assert.equal(await ofPod(name, ".status.containerStatuses[0].restartCount"), "0");
    }
  });

  test("slices of deleted pods are removed from every hierarchy, also when D-Bus lists them", async () => {
    await run("last", {});
    assert.match(await machine.run("busctl", "list", "--no-pager", "--no-legend"), / node-MainThr/);
    await kubectl("delete", "pod", "--wait", "last", ...classes);
    await waitFor(async () => (await podSlices()) === "" && (await podFolders()) === "", {
      timeoutMs: 180_000,
      retry: hasExitCode,
      what: "no slices",
    });
    assert.equal(await property("/kubepods.slice", "ActiveState"), "active");
  });
});
