import assert from "node:assert/strict";
import { test } from "node:test";
import { hasExitCode } from "@coxswain/apimachinery/testing/wait-for";
import { exec } from "@coxswain/dev-cluster/commands";
import { containerdSocket } from "@coxswain/dev-cluster/containerd";
import { runningPid } from "@coxswain/dev-cluster/processes";
import { getJson, isAway, kubectl, settings } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { type PodView, podsOf, readyPods } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

/** Every container of the runtime with its pod and attempt. */
async function containersOf(namespace: string): Promise<{ pod: string; attempt: string }[]> {
  const ctr = (...args: string[]): Promise<string> =>
    exec("ctr", ["--address", containerdSocket(settings), "--namespace", "k8s.io", ...args]);
  const ids = (
    await ctr(
      "containers",
      "list",
      "--quiet",
      `labels."io.kubernetes.pod.namespace"==${namespace},labels."io.cri-containerd.kind"==container`,
    )
  )
    .split("\n")
    .filter(Boolean);
  return Promise.all(
    ids.map(async (id) => {
      const info = JSON.parse(await ctr("containers", "info", id)) as {
        Labels: Record<string, string>;
        Spec?: { annotations?: Record<string, string> };
      };
      return {
        pod: info.Labels["io.kubernetes.pod.uid"] ?? "",
        attempt: info.Spec?.annotations?.["io.kubernetes.cri.container-name"] ?? "",
      };
    }),
  );
}

const containerIds = (pods: readonly PodView[]): string[] =>
  pods.map((pod) => pod.status.containerStatuses?.[0]?.containerID ?? "none").toSorted();

for (const victim of ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "etcd"] as const) {
  test(`kill -9 of ${victim} in a rollout: pods keep running, the rollout ends, nothing is lost or started twice`, async (t) => {
    const namespace = await newNamespace(t, "kill");
    const deployment = (name: string, image: string): string =>
      JSON.stringify({
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name, namespace },
        spec: {
          replicas: 3,
          selector: { matchLabels: { app: name } },
          template: {
            metadata: { labels: { app: name } },
            spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "main", image, command: ["sleep", "3600"] }] },
          },
        },
      });
    await kubectl("apply", "-f", "-", { input: deployment("steady", "busybox:1.35") });
    await kubectl("apply", "-f", "-", { input: deployment("moving", "busybox:1.35") });
    for (let i = 0; i < 5; i++) await kubectl("create", "configmap", `kept-${i}`, "-n", namespace, "--from-literal=a=1");
    const before = await readyPods(namespace, "app=steady", 3);
    await readyPods(namespace, "app=moving", 3);

    await kubectl("apply", "-f", "-", { input: deployment("moving", "busybox:1.36") });
    const pid = runningPid(settings, victim);
    assert.ok(pid !== undefined, `${victim} runs`);
    process.kill(pid, "SIGKILL");
    await waitFor(`the supervisor has started ${victim} again`, async () => {
      const again = runningPid(settings, victim);
      return again !== undefined && again !== pid;
    });

    await waitFor("the API server answers", async () => (await kubectl("get", "--raw", "/readyz")) === "ok", { retry: isAway });
    await kubectl("rollout", "status", "deployment/moving", "-n", namespace, "--timeout=180s", { timeoutMs: 240_000 });
    const moved = await readyPods(namespace, "app=moving", 3);
    assert.ok(moved.every((pod) => pod.spec.containers[0]?.image === "busybox:1.36"));
    const after = await podsOf(namespace, "app=steady");
    assert.deepEqual(containerIds(after), containerIds(before), "the steady pods are the same containers");
    assert.ok([...after, ...moved].every((pod) => pod.status.containerStatuses?.[0]?.restartCount === 0));
    assert.equal(
      (await getJson<{ items: { metadata: { name: string } }[] }>("configmaps", "-n", namespace)).items.filter((item) =>
        item.metadata.name.startsWith("kept-"),
      ).length,
      5,
    );
    await waitFor(
      "one container for each pod",
      async () => {
        const containers = await containersOf(namespace);
        return containers.length === 6 && new Set(containers.map(({ pod }) => pod)).size === 6;
      },
      { retry: hasExitCode }, // containerd is starting, or a container was removed after the list
    );
  });
}
