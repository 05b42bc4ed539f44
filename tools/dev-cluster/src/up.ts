import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { isAlreadyExists } from "@coxswain/apimachinery/errors/predicates";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { clusterRoleBindings, configMaps, nodes, serviceAccounts } from "@coxswain/apimachinery/schema/kinds/resources";
import { containerdProcess, containerdReady, importImages, writeContainerdConfig } from "./containerd.ts";
import { type DaemonName, daemonProcess, etcdProcess, programOf } from "./daemons.ts";
import { tearDownNode } from "./down.ts";
import { Failure, type Progress } from "./failure.ts";
import { setUpNetwork } from "./network.ts";
import { kubeconfigFile, kubeletClientName, pkiPlan, writePki } from "./pki.ts";
import { type ProcessSpec, runningPid, start, stop, waitUntil } from "./processes.ts";
import type { Settings } from "./settings.ts";

/** Names of everything that `up` starts, in the order it starts them. */
export const processNames = (settings: Settings): string[] => [
  "etcd",
  ...(settings.withNode ? ["containerd"] : []),
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  ...(settings.withNode ? ["kubelet", "service-routes"] : []),
];

/**
 * Starts what is not running yet and waits until the API and the node are ready. What this call started is stopped
 * again when a later step fails.
 */
export async function up(settings: Settings, progress: Progress): Promise<void> {
  const names = processNames(settings);
  const running = new Set(names.filter((name) => runningPid(settings, name) !== undefined));
  if (running.size === names.length) {
    await waitForReady(settings, progress);
    progress.step("everything is running already");
    return;
  }
  if (!existsSync(programOf(settings, "kube-apiserver"))) throw new Failure("the daemons are not built: run ./cox build");
  const started: string[] = [];
  try {
    await startAll(settings, progress, (name) => {
      if (running.has(name)) return false;
      started.push(name);
      return true;
    });
    await waitForReady(settings, progress);
  } catch (err) {
    for (const name of started.toReversed()) await stop(settings, name, 3_000);
    if (settings.withNode && running.size === 0) await tearDownNode(settings).catch(() => {});
    throw err;
  }
}

async function startAll(settings: Settings, progress: Progress, isNeeded: (name: string) => boolean): Promise<void> {
  const begin = (spec: ProcessSpec): boolean => {
    if (!isNeeded(spec.name)) return false;
    start(settings, spec);
    progress.step(`started ${spec.name}`);
    return true;
  };
  await writePki(pkiPlan(settings));
  progress.step("certificates and kubeconfigs are in place");
  begin(etcdProcess(settings));
  if (settings.withNode) {
    makeFolderSync(join(settings.state, "manifests"));
    await setUpNetwork(settings);
    writeContainerdConfig(settings);
    begin(containerdProcess(settings));
  }
  // etcd first needs a moment; the API server waits for it by itself.
  begin(daemonProcess(settings, "kube-apiserver"));
  begin(daemonProcess(settings, "kube-controller-manager"));
  begin(daemonProcess(settings, "kube-scheduler"));
  if (!settings.withNode) return;
  await waitUnlessAborted(progress.signal)(settings, "containerd", "containerd answers", 90_000, () => containerdReady(settings));
  await importImages(settings);
  progress.step("images are imported");
  begin(daemonProcess(settings, "kubelet"));
  begin(serviceRoutesProcess(settings));
}

function serviceRoutesProcess(settings: Settings): ProcessSpec {
  return {
    name: "service-routes",
    command: process.execPath,
    args: [
      "-C",
      "cox-source",
      join(settings.root, "tools/dev-cluster/src/service-routes.ts"),
      kubeconfigFile(settings, "admin"),
      settings.id,
      settings.podCidr,
    ],
  };
}

/** So that exec and logs reach the kubelet, which asks the API server who may. */
async function bindKubeletClient(client: Client): Promise<void> {
  const apiGroup = "rbac.authorization.k8s.io";
  const binding = {
    metadata: { name: "cox:kubelet-client" },
    roleRef: { apiGroup, kind: "ClusterRole", name: "system:kubelet-api-admin" },
    subjects: [{ apiGroup, kind: "User", name: kubeletClientName }],
  };
  await client.create(clusterRoleBindings, binding as never).catch((err: unknown) => {
    if (!isAlreadyExists(err)) throw err;
  });
}

export async function adminClient(settings: Settings): Promise<Client> {
  return newClient(await loadKubeconfig(kubeconfigFile(settings, "admin")));
}

async function waitForReady(settings: Settings, progress: Progress): Promise<void> {
  const waitUntil = waitUnlessAborted(progress.signal);
  const client = await adminClient(settings);
  try {
    await waitUntil(settings, "kube-apiserver", "the API server is ready", 180_000, async () => {
      const answer = await client.raw("GET", "/readyz").catch(() => undefined);
      return answer?.status === 200;
    });
    progress.step("the API server is ready");
    await bindKubeletClient(client);
    for (const name of ["kube-controller-manager", "kube-scheduler"] satisfies DaemonName[]) {
      if (runningPid(settings, name) === undefined) await waitUntil(settings, name, `${name} runs`, 0, () => false);
    }
    // Without it the first pod would be refused.
    await waitUntil(settings, "kube-controller-manager", "the default service account exists", 90_000, async () => {
      const [account, authority] = await Promise.all([
        client.get(serviceAccounts, { namespace: "default", name: "default" }).catch(() => undefined),
        client.get(configMaps, { namespace: "default", name: "kube-root-ca.crt" }).catch(() => undefined),
      ]);
      return account !== undefined && authority !== undefined;
    });
    if (!settings.withNode) return;
    await waitUntil(settings, "kubelet", `node ${settings.nodeName} is Ready`, 180_000, async () => {
      const node = await client.get<Node>(nodes, { name: settings.nodeName }).catch(() => undefined);
      return node?.status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") ?? false;
    });
    progress.step(`node ${settings.nodeName} is Ready`);
  } finally {
    client.close();
  }
}

/** Ends with the signal's reason. */
const waitUnlessAborted =
  (signal: AbortSignal): typeof waitUntil =>
  (settings, name, what, timeoutMs, check) =>
    waitUntil(settings, name, what, timeoutMs, () => {
      signal.throwIfAborted();
      return check();
    });

/** What the user needs to know after `up`. */
export function howToUse(settings: Settings): string {
  const name = settings.name === "default" ? "" : ` --name ${settings.name}`;
  const lines = [
    "",
    "The cluster is up. Use it with",
    `  ./cox kubectl${name} get nodes`,
    `  KUBECONFIG=${kubeconfigFile(settings, "admin")} kubectl get pods -A`,
    `  ./cox status | logs | down${name}`,
  ];
  if (!settings.asRoot)
    lines.push("", "There is no node: running containers needs root (namespaces, cgroups, mounts). Start again as root for one.");
  return lines.join("\n");
}
