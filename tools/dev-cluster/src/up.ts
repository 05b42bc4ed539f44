import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Client, type ClientDependencies, newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { clusterRoleBindings, configMaps, nodes, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { applyRights } from "@coxswain/cluster-services/apply-rights";
import { chooseParts } from "@coxswain/cluster-services/choose-parts";
import { parts } from "@coxswain/cluster-services/parts";
import { rightsOf } from "@coxswain/cluster-services/rights";
import { haveEnded, signalAll, startedBySupervisor } from "./cluster-processes.ts";
import { tryExec } from "./commands.ts";
import { containerdProcess, importImages, writeContainerdConfig } from "./containerd.ts";
import { daemonProcess, etcdProcess, fakeNodesProcess, programOf } from "./daemons.ts";
import { down, earlierServices } from "./down.ts";
import { Failure, type Progress } from "./failure.ts";
import { setUpNetwork } from "./network.ts";
import { kubeconfigFile, kubeletClientName, prepareCertificates, withOldKubeconfig } from "./pki.ts";
import { type ProcessSpec, runningPid, start, stop } from "./processes.ts";
import { notReadyReason } from "./readiness.ts";
import { servicePartsOf } from "./service-parts.ts";
import type { Settings } from "./settings.ts";
import { ensureSupervisor, supervisorPid } from "./supervisor-client.ts";
import { newWatch, type Watch } from "./watch.ts";

/** Names of all processes started by `up`, in start order. */
export const processNames = (settings: Settings): string[] => [
  "etcd",
  ...(settings.withNode ? ["containerd"] : []),
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  ...(settings.withNode ? ["kubelet", "coxswain-services"] : []),
  ...(settings.fakeNodes > 0 ? ["fake-nodes"] : []),
];

/**
 * Starts what is not running and waits until the API and the node are ready. When a step fails or the user interrupts, the
 * processes started by this call are stopped again.
 * @throws Failure with the reason and the last log lines when a process exits repeatedly
 */
export async function up(settings: Settings, progress: Progress): Promise<void> {
  const names = processNames(settings);
  const running = new Set(names.filter((name) => runningPid(settings, name) !== undefined));
  if (running.size > 0) {
    if (await ensureSupervisor(settings)) progress.step("started the supervisor, which adopts the running processes");
    if (runningPid(settings, earlierServices) !== undefined) await stop(settings, earlierServices);
    await renewOfRunning(settings, progress, running);
  }
  if (running.size === names.length) {
    await waitForReady(settings, progress, newWatch(settings, progress));
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
  } catch (err) {
    const quiet: Progress = { step: () => {}, signal: new AbortController().signal };
    if (running.size === 0) await down(settings, quiet, false).catch((left: Error) => process.stderr.write(`${left.message}\n`));
    else for (const name of started.toReversed()) await stop(settings, name, 3_000).catch(() => {});
    throw err;
  }
}

/** Most daemons reload certificates; those that read their kubeconfig once are stopped here and restarted by the caller. */
async function renewOfRunning(settings: Settings, progress: Progress, running: Set<string>): Promise<void> {
  for (const line of await prepareCertificates(settings)) progress.step(line);
  for (const name of withOldKubeconfig(settings)) {
    await stop(settings, name);
    progress.step(`stopped ${name} to restart it, since its kubeconfig has changed`);
    running.delete(name);
  }
}

/** Kills processes of this cluster that are in no state file (lost or damaged), because they hold ports and locks. */
export async function endStrays(settings: Settings, graceMs = 10_000): Promise<void> {
  if (supervisorPid(settings) !== undefined) return; // the running supervisor knows its processes
  const strays = startedBySupervisor(settings.id).filter(({ name, pid }) => runningPid(settings, name) !== pid);
  signalAll(strays, "SIGTERM");
  if (await haveEnded(strays, graceMs)) return;
  signalAll(strays, "SIGKILL");
  await haveEnded(strays, 10_000);
}

async function startAll(settings: Settings, progress: Progress, isNeeded: (name: string) => boolean): Promise<void> {
  const watch = newWatch(settings, progress);
  const begin = async (...specs: ProcessSpec[]): Promise<void> => {
    for (const spec of specs) {
      if (!isNeeded(spec.name)) continue;
      await start(settings, spec);
      progress.step(`started ${spec.name}`);
    }
  };
  const supervisor = ensureSupervisor(settings).then((isNew) => {
    if (isNew) progress.step("started the supervisor");
  });
  const network = settings.withNode ? setUpNetwork(settings) : undefined;
  const certificates = prepareCertificates(settings).then((lines) => {
    for (const line of lines) progress.step(line);
  });
  await settleAll([certificates, supervisor, network]);
  progress.step("certificates and kubeconfigs are in place");
  await begin({ ...etcdProcess(settings), ...(await versionOf("etcd")) });
  await begin(daemonProcess(settings, "kube-apiserver"));
  if (settings.withNode) {
    makeFolderSync(join(settings.state, "manifests"));
    writeContainerdConfig(settings);
    await begin({ ...containerdProcess(settings), ...(await versionOf("containerd")) });
  }
  await begin(daemonProcess(settings, "kube-controller-manager"), daemonProcess(settings, "kube-scheduler"));
  if (settings.fakeNodes > 0) await begin(fakeNodesProcess(settings));
  const images = settings.withNode ? startNode(settings, progress, watch, begin) : undefined;
  // Called once its rights are granted: without them its parts would fail, and be restarted ten seconds later.
  const startServices = (): Promise<void> => begin(daemonProcess(settings, "coxswain-services"));
  await settleAll([images, waitForReady(settings, progress, watch, startServices)]);
}

/** Like Promise.all, but waits for all promises before it rejects with the first one's reason: none continues during the cleanup. */
export async function settleAll(work: readonly (Promise<void> | undefined)[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

async function startNode(
  settings: Settings,
  progress: Progress,
  watch: Watch,
  begin: (...specs: ProcessSpec[]) => Promise<void>,
): Promise<void> {
  await watch.until("containerd answers", async () => notReadyReason(settings, "containerd"));
  await begin(daemonProcess(settings, "kubelet"));
  await importImages(settings);
  progress.step("images are imported");
}

/** @returns an empty object when the program does not print a version. */
async function versionOf(program: string): Promise<{ version?: string }> {
  const version = versionIn((await tryExec(program, ["--version"])) ?? "");
  return version === undefined ? {} : { version };
}

/** Pure: the version that a program prints about itself, with what stands behind its three numbers. */
export const versionIn = (text: string): string | undefined => /\d+\.\d+\.\d+\S*/.exec(text)?.[0];

const apiGroup = "rbac.authorization.k8s.io";
const kubeletClientBinding = {
  metadata: { name: "cox:kubelet-client" },
  roleRef: { apiGroup, kind: "ClusterRole", name: "system:kubelet-api-admin" },
  subjects: [{ apiGroup, kind: "User", name: kubeletClientName }],
};

/** Grants the API server's kubelet client access to the kubelet API, needed for exec and logs. */
export async function bindKubeletClient(client: Client, signal: AbortSignal): Promise<void> {
  // cast: objects to create have no common type
  await client.create(clusterRoleBindings, kubeletClientBinding as never, { signal }).catch((err: unknown) => {
    if (!isAlreadyExists(err)) throw err;
  });
}

/** Grants coxswain-services what its parts need. */
async function grantServices(settings: Settings, client: Client, signal: AbortSignal): Promise<void> {
  const chosen = chooseParts(parts, { enable: servicePartsOf(settings), disable: ["*"] });
  const lease = { leaseNamespace: "kube-system", leaseName: "coxswain-services" };
  await applyRights(client, rightsOf(chosen, lease), signal);
}

/** A client without the default limit of five requests per second: the start of a cluster sends about thirty. */
export async function adminClient(settings: Settings, dependencies?: ClientDependencies): Promise<Client> {
  return newClient({ ...(await loadKubeconfig(kubeconfigFile(settings, "admin"))), qps: -1 }, dependencies);
}

/** @param startServices called when coxswain-services has its rights */
async function waitForReady(
  settings: Settings,
  progress: Progress,
  watch: Watch,
  startServices: () => Promise<void> = async () => {},
): Promise<void> {
  const client = await adminClient(settings);
  const answers = (name: string): Promise<void> => watch.until(`${name} is ready`, () => notReadyReason(settings, name));
  try {
    await answers("etcd"); // first: when etcd is not ready, the failure names it rather than the API server
    await answers("kube-apiserver");
    progress.step("the API server is ready");
    await untilAnswered(watch, progress, "the API server's rights at the kubelet are granted", async (signal) => {
      await bindKubeletClient(client, signal);
      return undefined;
    });
    if (settings.withNode) {
      await untilAnswered(watch, progress, "the rights of coxswain-services are granted", async (signal) => {
        await grantServices(settings, client, signal);
        return undefined;
      });
      await startServices();
    }
    const others = processNames(settings).filter((name) => !["etcd", "kube-apiserver"].includes(name));
    await Promise.all([
      ...others.map(answers),
      // Pods are rejected without it.
      untilAnswered(watch, progress, "the default service account exists", async (signal) => {
        await client.get(serviceAccounts, { namespace: "default", name: "default" }, { signal });
        await client.get(configMaps, { namespace: "default", name: "kube-root-ca.crt" }, { signal });
        return undefined;
      }),
      settings.withNode && nodeIsReady(settings, progress, watch, client),
      settings.fakeNodes > 0 && fakeNodesAreReady(settings, progress, watch, client),
    ]);
  } finally {
    client.close();
  }
}

const requestMs = 5_000;

/**
 * Like `watch.until` for requests to the API server, which may be restarted meanwhile: a failed one is the reason to try again.
 * @param ask its signal is aborted by Ctrl-C and after 5 s
 */
function untilAnswered(
  watch: Watch,
  progress: Progress,
  what: string,
  ask: (signal: AbortSignal) => Promise<string | undefined>,
): Promise<void> {
  return watch.until(what, () =>
    ask(AbortSignal.any([progress.signal, AbortSignal.timeout(requestMs)])).catch((err: Error) => err.message),
  );
}

async function fakeNodesAreReady({ fakeNodes }: Settings, progress: Progress, watch: Watch, client: Client): Promise<void> {
  await untilAnswered(watch, progress, "the fake nodes are Ready", async (signal) => {
    const { items } = await client.list<Node>(nodes, {}, { signal });
    return missingNodes(items, fakeNodes);
  });
  progress.step(`${fakeNodes} fake nodes are Ready`);
}

/** Pure: undefined when at least `wanted` nodes are Ready. */
export function missingNodes(items: readonly Node[], wanted: number): string | undefined {
  const ready = items.filter((node) => readyCondition(node)?.status === "True").length;
  return ready >= wanted ? undefined : `${ready} of ${wanted} are`;
}

const readyCondition = (node: Node) => node.status?.conditions?.find(({ type }) => type === "Ready");

/** Pure: undefined when a node is Ready. */
export function whyNotReady(node: Node): string | undefined {
  const ready = readyCondition(node);
  return ready?.status === "True" ? undefined : (ready?.message ?? "the kubelet has not said so yet");
}

async function nodeIsReady(settings: Settings, progress: Progress, watch: Watch, client: Client): Promise<void> {
  const { nodeName: name } = settings;
  await untilAnswered(watch, progress, `node ${name} is Ready`, async (signal) => {
    const node = await client.get<Node>(nodes, { name }, { signal });
    const reason = whyNotReady(node);
    if (reason !== undefined) return reason;
    await client.patch(nodes, { name }, { type: "merge", body: { metadata: { labels: roleLabels } } }, { signal });
    return undefined;
  });
  progress.step(`node ${name} is Ready`);
}

/**
 * Role labels of the node, which a kubelet may not set itself. Without kubeadm's taint and its
 * exclude-from-external-load-balancers label, because pods run here. Source: kubeadm's phase mark-control-plane, 1.23
 */
const roleLabels = { "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": "" };

/** Instructions printed after `up`. */
export function howToUse(settings: Settings): string {
  const name = settings.name === "default" ? "" : ` --name ${settings.name}`;
  const lines = [
    "",
    "The cluster is up. Use it with",
    `  ./cox kubectl${name} get nodes`,
    `  KUBECONFIG=${quoted(kubeconfigFile(settings, "admin"))} kubectl get pods -A`,
    `  ./cox kubectl${name} proxy`.padEnd(27) + "  then open http://127.0.0.1:8001/ui/ in a browser",
    `  ./cox status | logs | down${name}`,
  ];
  if (!settings.asRoot && settings.fakeNodes === 0)
    lines.push(
      "",
      "There is no node: running containers needs root (namespaces, cgroups, mounts). Start again as root for one, or with --fake-nodes 1.",
    );
  return lines.join("\n");
}

/** Quotes a word for the shell. */
const quoted = (text: string): string => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
