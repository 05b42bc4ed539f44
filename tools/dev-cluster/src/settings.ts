import { createHash } from "node:crypto";
import { hostname, networkInterfaces } from "node:os";
import { join, resolve } from "node:path";
import { addressAt, parseCidr } from "./cidr.ts";
import { readRecord } from "./cluster-record.ts";
import { Failure, UsageFailure } from "./failure.ts";

/** Everything that tells one local cluster from another; two with different state folders, ports and networks live side by side. */
export interface Settings {
  /** The repository. */
  readonly root: string;
  /** As `--name` gives it; `default` without. */
  readonly name: string;
  /** All files of the cluster: `.cox` in the repository, for other names `.cox/clusters/<name>`. */
  readonly state: string;
  /** Sockets; short, since a socket's path must stay under 108 bytes. */
  readonly run: string;
  /** Six hex digits that name this cluster's bridge and chains. */
  readonly id: string;
  readonly asRoot: boolean;
  /** containerd, the kubelet and the service routes run too; needs root. */
  readonly withNode: boolean;
  readonly nodeName: string;
  /** Where pods reach the API server and the API server reaches the node. */
  readonly nodeAddress: string;
  readonly podCidr: string;
  readonly podGateway: string;
  readonly serviceCidr: string;
  readonly firstServiceAddress: string;
  readonly bridge: string;
  /** The API server writes `logs/audit.log` by this policy; undefined: no audit. */
  readonly auditPolicy: string | undefined;
  /** etcd does not wait for the disk; what the machine has not written when it loses power is lost. */
  readonly etcdWithoutSync: boolean;
  readonly ports: Readonly<Record<PortName, number>>;
  /** Flags that the user gives a process besides ours, each as `--name=value`; see `withExtraArgs`. */
  readonly extraArgs: Readonly<Record<ConfigurableProcess, readonly string[]>>;
}

export const portNames = [
  "apiserver",
  "etcd",
  "etcdPeer",
  "controllerManager",
  "scheduler",
  "kubelet",
  "kubeletHealthz",
] as const;
export type PortName = (typeof portNames)[number];

export const configurableProcesses = [
  "etcd",
  "containerd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
] as const;
/** A process that takes flags of the user. */
export type ConfigurableProcess = (typeof configurableProcesses)[number];

/** What differs between clusters and has to be decided once: by the user, or by `up` from what is free. */
export interface Choices {
  readonly nodeName: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  readonly withNode: boolean;
  /** A path; empty: none. */
  readonly auditPolicy: string;
  readonly etcdWithoutSync: boolean;
  readonly ports: Readonly<Record<PortName, number>>;
  readonly extraArgs: Readonly<Record<ConfigurableProcess, readonly string[]>>;
}

/** What the user has asked for by flags and variables; the rest is up to us. */
export interface Asked extends Partial<Omit<Choices, "ports" | "extraArgs">> {
  readonly ports?: Readonly<Partial<Record<PortName, number>>>;
  readonly extraArgs?: Readonly<Partial<Record<ConfigurableProcess, readonly string[]>>>;
}

const noExtraArgs: Choices["extraArgs"] = {
  etcd: [],
  containerd: [],
  "kube-apiserver": [],
  "kube-controller-manager": [],
  "kube-scheduler": [],
  kubelet: [],
};

/** Without a wish, where they are free. */
export const defaultChoices = (): Choices => ({
  nodeName: hostname().toLowerCase(),
  podCidr: "10.244.0.0/16",
  serviceCidr: "10.96.0.0/16",
  withNode: true,
  auditPolicy: "",
  etcdWithoutSync: false,
  ports: {
    apiserver: 6443,
    etcd: 2379,
    etcdPeer: 2380,
    controllerManager: 10257,
    scheduler: 10259,
    kubelet: 10250,
    kubeletHealthz: 10248,
  },
  extraArgs: noExtraArgs,
});

/** What the second argument leaves open is as in the first; flags of one process are replaced together. */
export const withAsked = (choices: Choices, asked: Asked): Choices => ({
  ...choices,
  ...asked,
  ports: { ...choices.ports, ...asked.ports },
  extraArgs: { ...choices.extraArgs, ...asked.extraArgs },
});

export const mergeAsked = (earlier: Asked, later: Asked): Asked => ({
  ...earlier,
  ...later,
  ports: { ...earlier.ports, ...later.ports },
  extraArgs: { ...earlier.extraArgs, ...later.extraArgs },
});

const nameForm = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/;

/** The folder of a cluster's files. `COX_STATE` replaces `.cox`. @throws Failure for a name that cannot be one. */
export function stateFolder(root: string, name: string, env: NodeJS.ProcessEnv = process.env): string {
  if (!nameForm.test(name))
    throw new UsageFailure(`${JSON.stringify(name)} cannot name a cluster: lower-case letters, digits and dashes, at most 40`);
  const base = resolve(root, env["COX_STATE"] ?? ".cox");
  return name === "default" ? base : join(base, "clusters", name);
}

/** All settings of the cluster in a state folder. */
export function newSettings(root: string, name: string, state: string, choices: Choices, env = process.env): Settings {
  const id = createHash("sha256").update(state).digest("hex").slice(0, 6);
  const asRoot = process.getuid?.() === 0;
  const withNode = asRoot && choices.withNode;
  const pods = parseCidr(choices.podCidr);
  const services = parseCidr(choices.serviceCidr);
  if (pods === undefined || services === undefined)
    throw new Failure(`${choices.podCidr} or ${choices.serviceCidr} is no IPv4 network`);
  const podGateway = addressAt(pods, 1);
  return {
    root,
    name,
    state,
    run: asRoot ? `/run/cox-${id}` : join(env["XDG_RUNTIME_DIR"] ?? "/tmp", `cox-${id}`),
    id,
    asRoot,
    withNode,
    nodeName: choices.nodeName,
    // The bridge's own address stays the same whatever network the machine is on, and pods always reach it.
    nodeAddress: withNode ? podGateway : (outwardAddress() ?? "127.0.0.1"),
    podCidr: choices.podCidr,
    podGateway,
    serviceCidr: choices.serviceCidr,
    firstServiceAddress: addressAt(services, 1),
    bridge: `cox${id}`,
    auditPolicy: choices.auditPolicy === "" ? undefined : resolve(root, choices.auditPolicy),
    etcdWithoutSync: choices.etcdWithoutSync,
    ports: choices.ports,
    extraArgs: choices.extraArgs,
  };
}

/**
 * The settings of a cluster as its last `up` has decided them, or, where none was started, as the variables and defaults say.
 * @param name as `--name`
 */
export function readSettings(root: string, env: NodeJS.ProcessEnv = process.env, name = "default"): Settings {
  const state = stateFolder(root, name, env);
  const choices = readRecord(state)?.choices ?? withAsked(defaultChoices(), askedByVariables(env));
  return newSettings(root, name, state, choices, env);
}

/**
 * Reads `COX_NODE_NAME`, `COX_POD_NETWORK` and `COX_SERVICE_NETWORK` (a CIDR, or the first two numbers of a /16),
 * `COX_AUDIT_POLICY` (file), `COX_ETCD_WITHOUT_SYNC` (anything), and `COX_PORT_APISERVER`, `COX_PORT_ETCD`,
 * `COX_PORT_ETCDPEER`, … (ports). An empty one counts as unset.
 */
export function askedByVariables(env: NodeJS.ProcessEnv): Asked {
  const text = <K extends string>(key: K, variable: string, read = (value: string) => value): { [P in K]?: string } =>
    env[variable] ? ({ [key]: read(env[variable]) } as { [P in K]: string }) : {};
  const network = (value: string): string => (/^\d+\.\d+$/.test(value) ? `${value}.0.0/16` : value);
  const ports: Partial<Record<PortName, number>> = {};
  for (const name of portNames) {
    const value = env[portVariable(name)];
    if (value) ports[name] = Number(value);
  }
  return {
    ...text("nodeName", "COX_NODE_NAME"),
    ...text("podCidr", "COX_POD_NETWORK", network),
    ...text("serviceCidr", "COX_SERVICE_NETWORK", network),
    ...text("auditPolicy", "COX_AUDIT_POLICY"),
    ...(env["COX_ETCD_WITHOUT_SYNC"] && { etcdWithoutSync: true }),
    ...(Object.keys(ports).length > 0 && { ports }),
  };
}

export const portVariable = (name: PortName): string => `COX_PORT_${name.toUpperCase()}`;

/** Our flags with the user's behind them; of a flag that the user gives, ours are left out. */
export function withExtraArgs(ours: readonly string[], extra: readonly string[]): string[] {
  const nameOf = (arg: string): string => arg.split("=", 1)[0] as string;
  const given = new Set(extra.map(nameOf));
  return [...ours.filter((arg) => !given.has(nameOf(arg))), ...extra];
}

function outwardAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flat()
    .find((address) => address !== undefined && address.family === "IPv4" && !address.internal)?.address;
}
