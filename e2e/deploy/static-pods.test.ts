import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { writeImage } from "@coxswain/deploy/image";
import { settings } from "../framework/kubectl.ts";
import { components, manifest } from "./kubeadm-manifests.ts";
import { bootMachine, importImages, type Machine, whyNoMachine } from "./machine.ts";

const names = Object.keys(components);
const why = process.env["COX_TEST_LONG"] === undefined ? "long: only with ./cox test --long" : whyNoMachine();

describe("a control plane of kubeadm's static pods", { skip: why }, () => {
  let machine: Machine;
  const kubectl = (...args: string[]) => machine.kubectl("/etc/kubernetes/admin.conf", ...args);
  const readiness = () =>
    kubectl(
      "-n",
      "kube-system",
      "get",
      "pods",
      "-o",
      'jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].ready} {.status.containerStatuses[0].restartCount}{"\\n"}{end}',
    );
  const areReady = async (): Promise<boolean> => {
    const lines = await readiness();
    return names.every((name) => new RegExp(`^${name}-machine true `, "m").test(lines));
  };

  before(async () => {
    machine = await bootMachine({
      units: ["containerd.service"],
      async prepare(release) {
        await writeImage(
          settings.root,
          release,
          names.map((name) => components[name]?.image as string),
        );
        mkdirSync(join(release, "manifests"));
        for (const name of names) writeFileSync(join(release, "manifests", `${name}.yaml`), manifest(name));
      },
    });
    await importImages(machine);
    await machine.run("ctr", "-n", "k8s.io", "images", "import", "/opt/coxswain/coxswain-image.tar");
    await machine.run("cp", "-r", "/opt/coxswain/manifests", "/etc/kubernetes/manifests");
    await machine.run("systemctl", "start", "kubelet");
  });
  after(() => machine?.kill());

  test("the kubelet starts it from its manifests, and the node gets ready", async () => {
    await waitFor(areReady, { timeoutMs: 180_000, retry: hasExitCode, what: "ready mirror pods" });
    assert.match(await kubectl("get", "nodes"), /^machine +Ready /m);
  });

  test("pods run on it", async () => {
    await waitFor(() => kubectl("get", "serviceaccount", "default"), {
      timeoutMs: 180_000,
      retry: hasExitCode,
      what: "the default service account",
    });
    await kubectl("create", "deployment", "web", "--image=busybox:1.35", "--replicas=2", "--", "sleep", "3600");
    await kubectl("wait", "--for=condition=Available", "--timeout=180s", "deployment/web");
  });

  test("a static pod whose process dies is started again; one whose manifest changes, anew", async () => {
    await machine.run("pkill", "-KILL", "--full", "lib/kube-scheduler.js");
    await waitFor(async () => /^kube-scheduler-machine true 1$/m.test(await readiness()), {
      timeoutMs: 180_000,
      retry: hasExitCode,
      what: "a restart",
    });
    await machine.run(
      "sed",
      "-i",
      's/"--leader-elect=true"/"--leader-elect=true", "--v=1"/',
      "/etc/kubernetes/manifests/kube-scheduler.yaml",
    );
    await waitFor(async () => /^kube-scheduler-machine true 0$/m.test(await readiness()), {
      timeoutMs: 180_000,
      retry: hasExitCode,
      what: "a new pod",
    });
  });

  test("the kubelet that is restarted finds its pods again", async () => {
    const before = await readiness();
    await machine.run("systemctl", "restart", "kubelet");
    await waitFor(areReady, { timeoutMs: 180_000, retry: hasExitCode, what: "ready mirror pods" });
    assert.equal(await readiness(), before);
  });
});
