import { existsSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { choose } from "../choose.ts";
import { readRecord, removeEmptyFolder, writeRecord } from "../cluster-record.ts";
import { Failure, newProgress } from "../failure.ts";
import { flagOf, portFlag } from "../flag-names.ts";
import { interruptible } from "../interrupt.ts";
import { clusterLockFile, withClusterLock } from "../lock.ts";
import { checkLoopback, isPortFree, readRoutes } from "../machine.ts";
import { checkFolder } from "../preflight.ts";
import { runningPid } from "../processes.ts";
import { register, withRegistry } from "../registry.ts";
import { startOnFreePorts } from "../retry-ports.ts";
import {
  type ConfigurableProcess,
  configurableProcesses,
  defaultChoices,
  mergeRequested,
  newSettings,
  type PortName,
  portNames,
  type RequestedChoices,
  requestedByVariables,
  type Settings,
  stateFolder,
} from "../settings.ts";
import { endStrays, howToUse, processNames, up } from "../up.ts";
import { nameFlag, newClusterVerb, numberArgument, waitOption } from "./command.ts";

type Options = Readonly<Record<string, string | number | boolean | string[] | undefined>>;

const argFlag = (name: ConfigurableProcess): string => `--${name}-arg`;
const camelCase = (flag: string): string => flag.slice(2).replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());

const portHelp: Readonly<Record<PortName, string>> = {
  apiserver: "of the API server",
  etcd: "of etcd, for the API server",
  etcdPeer: "of etcd, for other members",
  controllerManager: "of the controller manager's health and metrics",
  scheduler: "of the scheduler's health and metrics",
  kubelet: "of the kubelet",
  kubeletHealthz: "of the kubelet's /healthz",
  services: "of coxswain-services' health and metrics",
};

/** `./cox up`: chooses and saves the cluster's settings, and starts what is not running. */
export function upVerb(root: string): Command {
  const defaults = defaultChoices();
  const verb = newClusterVerb(
    "up",
    "start etcd, containerd, the four daemons and coxswain-services; ends when the node is Ready",
    {
      notes: [
        "The flags are kept for the next up, and for down, status, kubectl and logs. A port or network that is not requested is",
        "its default where that is free, else another that is. Networks and the node's name cannot change while there are data.",
        "Without root the control plane runs alone, or with nodes whose pods are objects only: --fake-nodes.",
      ],
      examples: [
        "./cox up                                          the default cluster",
        "./cox up --name b                                 a second one beside it",
        "./cox up --pod-network-cidr 10.50.0.0/16          pods get addresses of this network",
        "./cox up --kubelet-arg max-pods=50 --kubelet-arg v=4",
        "./cox up --kubelet-arg ''                         without these from now on",
        "./cox up --fake-nodes 3                           no containers: pods of three nodes are ready at once",
      ],
      files: [
        ".cox/cluster.json            the settings; .cox/clusters/<name>/ for another name",
        ".cox/admin.conf              the administrator's kubeconfig",
        ".cox/{pki,etcd,logs,run}/    certificates, data, logs, what runs",
        "/run/cox-<id>/               sockets",
        "/run/coxswain/               ports and networks of this machine's clusters",
      ],
      environment: [
        "COX_NODE_NAME, COX_POD_NETWORK, COX_SERVICE_NETWORK, COX_AUDIT_POLICY, COX_ETCD_WITHOUT_SYNC=1,",
        ...portNames.map((name) => `COX_PORT_${name.toUpperCase()}`).reduce<string[]>(fill, []),
        "            as the flags, which count more",
      ],
    },
  )
    .option(`${flagOf.nodeName} <name>`, `name of the node (default: that of the machine)`)
    .option(`${flagOf.podCidr} <cidr>`, `network of the pods (default: ${defaults.podCidr}, or a free one)`)
    .option(`${flagOf.serviceCidr} <cidr>`, `network of the services (default: ${defaults.serviceCidr}, or a free one)`)
    .option("--no-node", "the control plane alone: no containerd, no kubelet")
    .option("--node", "a node again, after --no-node or --fake-nodes")
    .option(
      `${flagOf.fakeNodes} <n>`,
      "nodes without containers in place of one, without root: node-1, node-2, …; 0 for none",
      fakeNodesArgument,
    )
    .option(`${flagOf.auditPolicy} <file>`, "the API server writes logs/audit.log by this policy; '' for none")
    .option(`${flagOf.etcdWithoutSync}`, "etcd does not wait for the disk: faster; not safe when the machine loses power")
    .option("--no-etcd-unsafe-no-fsync", "etcd waits for the disk again");
  for (const name of portNames)
    verb.option(
      `${portFlag(name)} <port>`,
      `${portHelp[name]} (default: ${defaults.ports[name]}, or a free one)`,
      numberArgument,
    );
  for (const name of configurableProcesses) {
    const option = new Option(`${argFlag(name)} <flag=value>`, `a flag of ${name} in place of ours; may be repeated`);
    verb.addOption(option.argParser((text: string, earlier: string[] = []) => [...earlier, ...daemonFlag(text)]));
  }
  verb.addOption(waitOption());
  // Negatable options stay `undefined` unless given, so that values of an earlier `up` are kept.
  for (const option of verb.options) if (option.negate) verb.setOptionValue(option.attributeName(), undefined);
  return verb.action((options: Options) => runUp(root, options));
}

function fill(lines: string[], word: string): string[] {
  const last = lines.at(-1);
  if (last === undefined || last.length + word.length > 100) return [...lines, `${word},`];
  return [...lines.slice(0, -1), `${last} ${word},`];
}

/** More would overload the controllers on a small machine. */
const mostFakeNodes = 1_000;

function fakeNodesArgument(text: string): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (count <= mostFakeNodes) return count;
  throw new InvalidArgumentError(`Expected a whole number from 0 to ${mostFakeNodes}.`);
}

/** Accepts `max-pods=50` and `--max-pods=50`, like k3s; empty removes all flags. */
function daemonFlag(text: string): string[] {
  if (text === "") return [];
  if (!/^(--)?[a-zA-Z][^=\s]*(=.*)?$/s.test(text))
    throw new InvalidArgumentError("Expected a flag with its value, such as max-pods=50.");
  return [text.startsWith("--") ? text : `--${text}`];
}

/** Settings requested by flags. */
export function requestedByFlags(options: Options): RequestedChoices {
  const ports: Partial<Record<PortName, number>> = {};
  for (const name of portNames) {
    const port = options[camelCase(portFlag(name))];
    if (typeof port === "number") ports[name] = port;
  }
  const extraArgs: Partial<Record<ConfigurableProcess, readonly string[]>> = {};
  for (const name of configurableProcesses) {
    const args = options[camelCase(argFlag(name))];
    if (Array.isArray(args)) extraArgs[name] = args;
  }
  const given = {
    nodeName: options["nodeName"],
    podCidr: options["podNetworkCidr"],
    serviceCidr: options["serviceCidr"],
    withNode: options["node"],
    fakeNodes: options["fakeNodes"] ?? (options["node"] === true ? 0 : undefined),
    auditPolicy: typeof options["auditPolicyFile"] === "string" ? absolute(options["auditPolicyFile"]) : undefined,
    etcdWithoutSync: options["etcdUnsafeNoFsync"],
  };
  return {
    ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as RequestedChoices), // cast: the entries without undefined ones
    ...(Object.keys(ports).length > 0 && { ports }),
    ...(Object.keys(extraArgs).length > 0 && { extraArgs }),
  };
}

const absolute = (path: string): string => (path === "" ? "" : resolve(path));

async function runUp(root: string, options: Options): Promise<void> {
  const name = options["name"] as string; // cast: declared as a string
  const state = stateFolder(root, name);
  checkFolder(state);
  checkLoopback();
  await interruptible(async (signal) => {
    const requested = mergeRequested(requestedByVariables(process.env), requestedByFlags(options));
    const work = async (): Promise<void> => {
      const decideOrRemove = (): Promise<Settings> =>
        decide(root, name, state, requested, signal).catch((err: unknown) => {
          if (readRecord(state) === undefined) {
            // Nothing was started: remove the empty folder again.
            rmSync(clusterLockFile(state), { force: true });
            removeEmptyFolder(name, state);
          }
          throw err;
        });
      const progress = newProgress(signal);
      const start = (chosen: Settings): Promise<void> => up(chosen, progress);
      const settings = await startOnFreePorts({ decide: decideOrRemove, start, takenPorts, say, signal });
      console.log(howToUse(settings));
    };
    await withClusterLock({ state, name }, "up", work, { waitMs: options["wait"] as number, signal }); // cast: declared as a duration
  });
}

const say = (text: string): void => void process.stderr.write(`cox: ${text}\n`);

/** The cluster's ports that were not requested and that other programs listen on; none while a process of the cluster runs. */
async function takenPorts(settings: Settings): Promise<number[]> {
  if (processNames(settings).some((process) => runningPid(settings, process) !== undefined)) return [];
  const requested = readRecord(settings.state)?.requested.ports;
  const chosen = portNames.filter((name) => requested?.[name] === undefined).map((name) => settings.ports[name]);
  const areFree = await Promise.all(chosen.map((port) => isPortFree(port)));
  return chosen.filter((_, index) => !areFree[index]);
}

/** Chooses the settings under the registry lock, and saves them. */
async function decide(
  root: string,
  name: string,
  state: string,
  requested: RequestedChoices,
  signal: AbortSignal,
): Promise<Settings> {
  return withRegistry(signal, async (clusters) => {
    const record = readRecord(state);
    const before = newSettings(root, name, state, record?.choices ?? defaultChoices());
    await endStrays(before); // their ports would count as taken
    const decided = await choose(requested, {
      nameFlag: nameFlag(name),
      record,
      hasData: existsSync(join(state, "etcd")),
      isRunning: processNames(before).some((process) => runningPid(before, process) !== undefined),
      others: clusters.filter((cluster) => cluster.id !== before.id),
      routes: readRoutes(before.bridge),
      isPortFree,
      say,
    });
    const policy = decided.choices.auditPolicy;
    if (policy !== "" && !existsSync(resolve(root, policy)))
      throw new Failure(`${flagOf.auditPolicy}: there is no file ${policy}`);
    const settings = newSettings(root, name, state, decided.choices);
    writeRecord(state, decided);
    register(settings, decided.choices);
    return settings;
  });
}
