import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { daemonProcess } from "@coxswain/dev-cluster/daemons";
import { start, stop } from "@coxswain/dev-cluster/processes";
import { startLogind, whyNoLogind } from "../../packages/node-agent/src/testing/logind.ts";
import { getJson, kubectl, settings } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, createPod, isReady, type PodView, waitForPod } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

interface NodeView {
  spec: { taints?: object[] };
  status: { conditions: { type: string; status: string; reason: string; message: string }[] };
}

type Ended = PodView & { status: { message?: string } };

const readiness = async (): Promise<NodeView["status"]["conditions"][number] | undefined> =>
  (await getJson<NodeView>("node", settings.nodeName)).status.conditions.find(({ type }) => type === "Ready");

const nodeIsReady = (): Promise<true> =>
  waitFor("the node to be ready, and to take pods", async () => {
    const { spec } = await getJson<NodeView>("node", settings.nodeName);
    return (spec.taints ?? []).length === 0 && (await readiness())?.status === "True";
  });

test("when the machine shuts down pods end first, critical ones last; the node reports it and accepts no more", {
  skip: whyNoLogind,
}, async (t) => {
  const namespace = await newNamespace(t, "shutdown");
  const machine = await startLogind(t);
  const dir = mkdtempSync(join(tmpdir(), "cox-shutdown-"));
  const config = join(dir, "kubelet.json");
  const periods = { shutdownGracePeriod: "4s", shutdownGracePeriodCriticalPods: "2s" };
  writeFileSync(
    config,
    JSON.stringify({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", ...periods }),
  );
  const usual = daemonProcess(settings, "kubelet");
  t.after(async () => {
    await stop(settings, "kubelet");
    await start(settings, usual);
    rmSync(dir, { recursive: true, force: true });
    await nodeIsReady();
  });
  await stop(settings, "kubelet");
  const args = [...usual.args, `--config=${config}`];
  await start(settings, { ...usual, args, env: { ...usual.env, DBUS_SYSTEM_BUS_ADDRESS: machine.address } });
  await waitFor("the kubelet to hold the shutdown up", async () =>
    (await machine.inhibitors()).some(([, who]) => who === "kubelet"),
  );
  await nodeIsReady();

  const deaf = (name: string): object => busybox(name, "trap : TERM; while :; do sleep 0.1; done");
  await createPod(namespace, "web", { containers: [deaf("main")] });
  await createPod(namespace, "dns", { containers: [deaf("main")], priorityClassName: "system-cluster-critical" });
  for (const name of ["web", "dns"]) await waitForPod(namespace, name, "is ready", isReady);

  await machine.powerOff();
  const notReady = await waitFor("the node to report its shutdown", async () => {
    const ready = await readiness();
    return ready?.status === "False" && ready;
  });
  assert.deepEqual([notReady.reason, notReady.message], ["KubeletNotReady", "node is shutting down"]);
  await createPod(namespace, "late", {
    nodeName: settings.nodeName,
    containers: [deaf("main")],
    tolerations: [{ operator: "Exists" }],
  });
  const ended = async (name: string): Promise<Ended> =>
    await waitForPod(namespace, name, "has ended", ({ status }) => status.phase === "Failed");
  assert.deepEqual((await ended("late")).status.reason, "NodeShutdown");
  for (const name of ["web", "dns"]) {
    const { reason, message } = (await ended(name)).status;
    assert.deepEqual([reason, message], ["Terminated", "Pod was terminated in response to imminent node shutdown."]);
  }
  await waitFor("logind to go on", async () => machine.units.includes("poweroff.target"));
  await waitFor("the node's event", async () =>
    /NodeShutdown +node\/\S+ +Shutdown manager detected shutdown event/.test(await kubectl("get", "events")),
  );
});
