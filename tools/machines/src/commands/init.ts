/** `coxswain init`: the first machine of a cluster. */
import { existsSync, readFileSync } from "node:fs";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { Command } from "commander";
import { authorityHash } from "../cluster/authority-hash.ts";
import { newCertificateKey, parseCertificateKey } from "../cluster/sealed-certificates.ts";
import {
  bootstrapTokenStep,
  markControlPlaneStep,
  servicesRightsStep,
  uploadCertificatesStep,
  uploadConfigStep,
} from "../cluster/steps.ts";
import { type StoredConfiguration, storedConfiguration } from "../cluster/stored-configuration.ts";
import { type BootstrapToken, dayMs, newToken, newTokenText } from "../cluster/tokens.ts";
import type { Document } from "../config/fields.ts";
import { clusterSettings, type NodeSettings, nodeSettings, serverUrl, urlOf } from "../config/settings.ts";
import { type InitialCluster, peerUrl } from "../control-plane/flags.ts";
import { renewalStep } from "../control-plane/renewal.ts";
import { certsStep, daemonsStep, etcdStep, podsStep } from "../control-plane/steps.ts";
import { UsageFailure } from "../failure.ts";
import { machineFacts } from "../host/facts.ts";
import { adminConf, clientBy, type Machine, pkiFile } from "../machine.ts";
import { kubeletConfiguration } from "../node/kubelet-config.ts";
import { installStep, kubeletStep, links, servicesStep } from "../node/steps.ts";
import { preflight } from "../preflight/preflight.ts";
import { runSteps, type Step } from "../steps.ts";
import {
  type Archive,
  type CommonFlags,
  documentsOf,
  duration,
  list,
  newCommand,
  port,
  refuseBeside,
  withSetUpFlags,
} from "./options.ts";

interface Flags extends CommonFlags {
  readonly apiserverAdvertiseAddress?: string;
  readonly apiserverBindPort?: number;
  readonly apiserverCertExtraSans?: readonly string[];
  readonly certificateKey?: string;
  readonly controlPlaneEndpoint?: string;
  readonly criSocket?: string;
  readonly nodeName?: string;
  readonly podNetworkCidr?: string;
  readonly serviceCidr?: string;
  readonly serviceDnsDomain?: string;
  readonly staticPods: boolean;
  readonly token?: string;
  readonly tokenTtl?: number;
  readonly uploadCerts: boolean;
}

export const initCommand = ({ home }: Archive): Command =>
  withSetUpFlags(newCommand("init", "Makes this machine the first of a cluster: its control plane, and a node."))
    .option(
      "--apiserver-advertise-address <address>",
      "address of this machine for the others (default: that of the default route)",
    )
    .option("--apiserver-bind-port <port>", "port of the API server (default: 6443)", port)
    .option("--apiserver-cert-extra-sans <names>", "more names and addresses of the API server, comma separated", list)
    .option("--certificate-key <key>", "seals the certificates with this key instead of a new one")
    .option("--control-plane-endpoint <host:port>", "name or load balancer in front of the API servers")
    .option("--cri-socket <path>", "socket of the container runtime")
    .option("--node-name <name>", "name of this machine's node (default: the host's name)")
    .option("--pod-network-cidr <network>", "network of the pods (default: 10.244.0.0/16)")
    .option("--service-cidr <network>", "network of the Services (default: 10.96.0.0/12)")
    .option("--service-dns-domain <domain>", "domain of the cluster's names (default: cluster.local)")
    .option("--static-pods", "run the control plane as static pods of the kubelet instead of systemd units", false)
    .option("--token <token>", "token for machines that join, instead of a new one")
    .option("--token-ttl <time>", "how long the token lasts; 0: for ever (default: 24h)", duration)
    .option("--upload-certs", "seal the certificates in the cluster, for more machines of the control plane", false)
    .addHelpText(
      "after",
      `
Phases: preflight, ${stepNames}
After a failure, mend its cause and run the command again: it continues with what is missing. coxswain reset undoes it.`,
    )
    .action((flags: Flags) => init(home, flags));

const stepNames =
  "install, certs, etcd, control-plane, kubelet-start, upload-config, upload-certs, mark-control-plane, bootstrap-token, addon, coxswain-services, certs-renewal";

async function init(home: string, flags: Flags): Promise<void> {
  const {
    InitConfiguration: requested = {},
    ClusterConfiguration,
    KubeletConfiguration,
    JoinConfiguration,
  } = documentsOf(flags.config);
  if (JoinConfiguration !== undefined) throw new UsageFailure(`${flags.config}: JoinConfiguration is for coxswain join`);
  if (flags.config !== undefined)
    refuseBeside("--config: write it into the file", {
      "apiserver-advertise-address": flags.apiserverAdvertiseAddress,
      "apiserver-bind-port": flags.apiserverBindPort,
      "apiserver-cert-extra-sans": flags.apiserverCertExtraSans,
      "control-plane-endpoint": flags.controlPlaneEndpoint,
      "pod-network-cidr": flags.podNetworkCidr,
      "service-cidr": flags.serviceCidr,
      "service-dns-domain": flags.serviceDnsDomain,
      token: flags.token,
      "token-ttl": flags.tokenTtl,
    });
  const node = nodeSettings(
    {
      registration: { ...requested.nodeRegistration, ...given({ name: flags.nodeName, criSocket: flags.criSocket }) },
      endpoint:
        requested.localAPIEndpoint ??
        given({ advertiseAddress: flags.apiserverAdvertiseAddress, bindPort: flags.apiserverBindPort }),
      isControlPlane: true,
    },
    machineFacts(),
  );
  const print = (line: string): void => console.log(line);
  const stored = flags.config === undefined && hasNoClusterFlags(flags) ? await ofThisCluster(node) : undefined;
  const cluster = stored?.cluster ?? clusterSettings(ClusterConfiguration ?? clusterDocument(flags));
  const machine: Machine = { home, cluster, node, print };
  const tokens = tokensOf(requested, flags);
  const key = flags.certificateKey ?? requested.certificateKey ?? newCertificateKey();
  parseCertificateKey(key);
  const skip = [...flags.skipPhases, ...(requested.skipPhases ?? [])];
  if (!skip.includes("preflight"))
    await preflight(
      {
        isControlPlane: true,
        isNew: true,
        nodeName: node.name,
        address: node.advertiseAddress,
        ...{ bindPort: node.bindPort, criSocket: node.criSocket, etcdDataDir: cluster.etcdDataDir, staticPods: flags.staticPods },
      },
      {
        ...{ home, links, print, kubeletFlags: node.kubeletFlags },
        ignored: [...flags.ignorePreflightErrors, ...(requested.nodeRegistration?.ignorePreflightErrors ?? [])],
      },
    );
  const kubelet = () => stored?.kubelet ?? kubeletConfiguration(cluster, KubeletConfiguration);
  const steps = initSteps({ staticPods: flags.staticPods, kubelet, tokens, ...(flags.uploadCerts && { certificateKey: key }) });
  await runSteps(steps, machine, { dryRun: flags.dryRun, skip, print });
  if (!flags.dryRun) printJoinLines(machine, tokens[0], flags.uploadCerts ? key : undefined);
}

/** Whether none of the flags is about the cluster rather than this machine. */
const hasNoClusterFlags = (flags: Flags): boolean =>
  [
    flags.apiserverCertExtraSans,
    flags.controlPlaneEndpoint,
    flags.podNetworkCidr,
    flags.serviceCidr,
    flags.serviceDnsDomain,
  ].every((value) => value === undefined);

/**
 * The configuration that this machine's cluster was created with, for an `init` that is repeated without flags. @returns
 * undefined while no API server answers
 */
async function ofThisCluster({ advertiseAddress, bindPort }: NodeSettings): Promise<StoredConfiguration | undefined> {
  if (!existsSync(adminConf)) return undefined;
  try {
    const client = await clientBy(adminConf, urlOf(advertiseAddress, bindPort));
    return await storedConfiguration(client).finally(() => client.close());
  } catch (err) {
    if (err instanceof UsageFailure) throw err; // a field that is not supported
    return undefined; // preflight reports the problem
  }
}

interface InitOptions {
  readonly staticPods: boolean;
  readonly kubelet: () => Readonly<Record<string, unknown>>;
  readonly tokens: readonly BootstrapToken[];
  /** undefined: the certificates are not uploaded. */
  readonly certificateKey?: string;
}

/** The table of `init`. */
function initSteps({ staticPods, kubelet, tokens, certificateKey }: InitOptions): Step<Machine>[] {
  const alone = ({ node }: Machine): InitialCluster => ({ state: "new", members: { [node.name]: peerUrl(node) } });
  const start = kubeletStep({ configuration: kubelet, hasServingCertificate: true });
  return [
    installStep,
    certsStep,
    // Static pods need a kubelet; units are better there before it.
    ...(staticPods ? [start, podsStep(alone)] : [etcdStep(alone), daemonsStep, start]),
    uploadConfigStep(kubelet),
    ...(certificateKey === undefined ? [] : [uploadCertificatesStep(certificateKey)]),
    markControlPlaneStep,
    bootstrapTokenStep(tokens),
    servicesRightsStep,
    servicesStep(false),
    renewalStep,
  ];
}

/** Without members that are undefined. */
function given<T extends object>(values: T): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

const clusterDocument = (flags: Flags): Document<"ClusterConfiguration"> =>
  given({
    controlPlaneEndpoint: flags.controlPlaneEndpoint,
    networking: given({
      podSubnet: flags.podNetworkCidr,
      serviceSubnet: flags.serviceCidr,
      dnsDomain: flags.serviceDnsDomain,
    }),
    apiServer: given({ certSANs: flags.apiserverCertExtraSans }),
  });

/** @throws UsageFailure */
export function tokensOf(
  { bootstrapTokens }: Document<"InitConfiguration">,
  { token, tokenTtl }: Pick<Flags, "token" | "tokenTtl">,
): BootstrapToken[] {
  const now = Date.now();
  const description = "The default bootstrap token generated by 'coxswain init'.";
  if (bootstrapTokens === undefined || bootstrapTokens.length === 0)
    return [newToken({ token: token ?? newTokenText(), ttlMs: tokenTtl ?? dayMs, description, now })];
  return bootstrapTokens.map((requested, i) => {
    const at = `InitConfiguration.bootstrapTokens[${i}]`;
    if (requested.ttl !== undefined && requested.expires !== undefined)
      throw new UsageFailure(`${at}: ttl and expires exclude each other`);
    const ttlMs = requested.expires === undefined ? parseDuration(requested.ttl ?? "24h") : Date.parse(requested.expires) - now;
    if (ttlMs === undefined || Number.isNaN(ttlMs) || ttlMs < 0)
      throw new UsageFailure(`${at}: the time of expiry is in the past`);
    const { usages, groups } = requested;
    return newToken({ token: requested.token ?? newTokenText(), description: requested.description, ttlMs, usages, groups, now });
  });
}

/** What to run on other machines. */
export function joinLines(server: string, token: string, hash: string, certificateKey: string | undefined): string[] {
  const line = `coxswain join ${new URL(server).host} --token ${token} --discovery-token-ca-cert-hash ${hash}`;
  return [
    ...(certificateKey === undefined
      ? []
      : ["another machine of the control plane:", `  ${line} --control-plane --certificate-key ${certificateKey}`]),
    "a node:",
    `  ${line}`,
  ];
}

function printJoinLines({ cluster, node, print }: Machine, token: BootstrapToken | undefined, key: string | undefined): void {
  print("");
  print("The control plane runs. To use it: export KUBECONFIG=/etc/kubernetes/admin.conf");
  if (token === undefined) return;
  const hash = authorityHash(readFileSync(pkiFile("ca.crt"), "utf8"));
  print("The archive has to be unpacked on each machine; then, as root,");
  for (const line of joinLines(serverUrl(cluster, node), `${token.id}.${token.secret}`, hash, key)) print(line);
  if (key !== undefined)
    print("The certificate key opens the keys of the cluster: keep it secret. It is not stored anywhere, and ends in two hours.");
}
