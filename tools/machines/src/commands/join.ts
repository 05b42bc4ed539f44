/** `coxswain join`: makes this machine a node of a cluster, or another machine of its control plane. */

import { readFileSync } from "node:fs";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { userAgentOf } from "@coxswain/apimachinery/client/config";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { Endpoints, Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { endpoints } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Command } from "commander";
import { certificatesSecretName, kubeadmConfigName, kubeletConfigName, servicesTokenName } from "../cluster/bootstrap-objects.ts";
import { type Discovered, discover, discoveredIn } from "../cluster/discovery.ts";
import { openedFiles, parseCertificateKey, sharedFiles } from "../cluster/sealed-certificates.ts";
import { markControlPlaneStep } from "../cluster/steps.ts";
import { readObject, type StoredConfiguration, storedConfiguration } from "../cluster/stored-configuration.ts";
import { parseToken } from "../cluster/tokens.ts";
import type { Document } from "../config/fields.ts";
import { nodeSettings, urlOf } from "../config/settings.ts";
import { renewalStep } from "../control-plane/renewal.ts";
import { certsStep, daemonsStep } from "../control-plane/steps.ts";
import { etcdJoinStep } from "../etcd/steps.ts";
import { Failure, UsageFailure } from "../failure.ts";
import { machineFacts } from "../host/facts.ts";
import { missingFiles, readIfThere, type WantedFile, writeFiles } from "../host/files.ts";
import { until } from "../host/until.ts";
import { adminConf, clientBy, type Machine, pkiFile } from "../machine.ts";
import { type Credentials, credentialsStep, tlsBootstrapStep } from "../node/join-steps.ts";
import { installStep, kubeletStep, links, servicesStep, usesApiProxy } from "../node/steps.ts";
import { preflight, preflightEtcdData } from "../preflight/preflight.ts";
import { runSteps, type Step } from "../steps.ts";
import { type Archive, type CommonFlags, documentsOf, list, newCommand, port, refuseBeside, withSetUpFlags } from "./options.ts";

/** Flags of the command line. */
type Flags = CommonFlags & ClusterFlags;

/** Flags that replace a JoinConfiguration. */
interface ClusterFlags {
  readonly apiserverAdvertiseAddress?: string;
  readonly apiserverBindPort?: number;
  readonly certificateKey?: string;
  readonly controlPlane?: boolean;
  readonly criSocket?: string;
  readonly discoveryFile?: string;
  readonly discoveryToken?: string;
  readonly discoveryTokenCaCertHash?: readonly string[];
  readonly discoveryTokenUnsafeSkipCaVerification?: boolean;
  readonly nodeName?: string;
  readonly tlsBootstrapToken?: string;
  readonly token?: string;
}

export const joinCommand = ({ home }: Archive): Command =>
  withSetUpFlags(
    newCommand("join", "Makes this machine a node of a cluster, or with --control-plane another machine of its control plane."),
  )
    .argument("[endpoint]", "an API server: 192.0.2.11:6443")
    .option(
      "--apiserver-advertise-address <address>",
      "address of this machine for the others (default: that of the default route)",
    )
    .option("--apiserver-bind-port <port>", "with --control-plane: port of the API server (default: 6443)", port)
    .option("--certificate-key <key>", "with --control-plane: opens the certificates that coxswain init --upload-certs sealed")
    .option("--control-plane", "run a control plane here, too")
    .option("--cri-socket <path>", "socket of the container runtime")
    .option("--discovery-file <file>", "a kubeconfig that names the cluster and its authority, instead of a token and a hash")
    .option("--discovery-token <token>", "token with which cluster-info is signed")
    .option("--discovery-token-ca-cert-hash <hashes>", "hashes of the authority's key: sha256:…", list)
    .option("--discovery-token-unsafe-skip-ca-verification", "trust every server that knows the token")
    .option("--node-name <name>", "name of this machine's node (default: the host's name)")
    .option("--tls-bootstrap-token <token>", "token with which certificates are requested")
    .option("--token <token>", "both tokens")
    .addHelpText(
      "after",
      `
Phases: preflight, install, credentials, coxswain-services, kubelet-start, kubelet-bootstrap; with --control-plane: preflight, install,
  download-certs, certs, etcd-join, control-plane, kubelet-start, mark-control-plane, coxswain-services, certs-renewal
After a failure, mend its cause and run the command again: it continues with what is missing. coxswain reset undoes it.`,
    )
    .action((endpoint: string | undefined, flags: Flags) => join(home, endpoint, flags));

async function join(home: string, endpoint: string | undefined, flags: Flags): Promise<void> {
  const requested = joinDocument(endpoint, flags);
  const { controlPlane } = requested;
  const isControlPlane = controlPlane !== undefined;
  const key = controlPlane?.certificateKey === undefined ? undefined : parseCertificateKey(controlPlane.certificateKey);
  const node = nodeSettings(
    {
      registration: {
        ...requested.nodeRegistration,
        ...(flags.nodeName && { name: flags.nodeName }),
        ...(flags.criSocket && { criSocket: flags.criSocket }),
      },
      endpoint: controlPlane?.localAPIEndpoint ?? {
        ...(flags.apiserverAdvertiseAddress && { advertiseAddress: flags.apiserverAdvertiseAddress }),
      },
      isControlPlane,
    },
    machineFacts(),
  );
  const print = (line: string): void => console.log(line);
  const skip = [...flags.skipPhases, ...(requested.skipPhases ?? [])];
  const isChecked = !skip.includes("preflight");
  const ignored = [...flags.ignorePreflightErrors, ...(requested.nodeRegistration?.ignorePreflightErrors ?? [])];
  if (isChecked)
    await preflight(
      {
        ...{ isControlPlane, isNew: true, nodeName: node.name, address: node.advertiseAddress, bindPort: node.bindPort },
        ...{ criSocket: node.criSocket, etcdDataDir: undefined, staticPods: false },
      },
      { home, links, print, kubeletFlags: node.kubeletFlags, ignored },
    );
  const found = await discovered(requested);
  const known = await readCluster(found, isControlPlane);
  if (isChecked && isControlPlane) preflightEtcdData(known.cluster.etcdDataDir, { ignored, print });
  const machine: Machine = { home, cluster: known.cluster, node, print };
  const steps = isControlPlane
    ? controlPlaneSteps(known.kubelet, sharedCertificates(known.sealed, key), found.server)
    : nodeSteps(known.kubelet, {
        ...{ ...found, servicesToken: known.servicesToken },
        isBehindProxy: known.servicesToken !== undefined && usesApiProxy(known.cluster),
      });
  await runSteps(steps, machine, { dryRun: flags.dryRun, skip, print });
  if (!flags.dryRun)
    print(isControlPlane ? "This machine is one of the control plane now." : "This machine is a node of the cluster now.");
}

/** @throws UsageFailure */
export function joinDocument(
  endpoint: string | undefined,
  flags: ClusterFlags & { readonly config?: string },
): Document<"JoinConfiguration"> {
  if (flags.config !== undefined) {
    const { JoinConfiguration, ...others } = documentsOf(flags.config);
    if (JoinConfiguration === undefined) throw new UsageFailure(`${flags.config}: it has no JoinConfiguration`);
    const rest = Object.keys(others);
    if (rest.length > 0)
      throw new UsageFailure(`${flags.config}: ${rest.join(", ")} cannot be set by join: it is a setting of the whole cluster`);
    refuseBeside("--config: write it into the file", {
      ...discoveryByToken(endpoint, flags),
      "apiserver-advertise-address": flags.apiserverAdvertiseAddress,
      "apiserver-bind-port": flags.apiserverBindPort,
      "certificate-key": flags.certificateKey,
      "control-plane": flags.controlPlane,
      "discovery-file": flags.discoveryFile,
      "tls-bootstrap-token": flags.tlsBootstrapToken,
      token: flags.token,
    });
    const { bootstrapToken, file } = JoinConfiguration.discovery ?? {};
    if (bootstrapToken !== undefined && file !== undefined)
      throw new UsageFailure("JoinConfiguration.discovery: bootstrapToken and file exclude each other");
    return JoinConfiguration;
  }
  if (flags.discoveryFile !== undefined)
    refuseBeside("--discovery-file, which has the cluster's address and authority", discoveryByToken(endpoint, flags));
  const discoveryToken = flags.discoveryToken ?? flags.token;
  const tlsToken = flags.tlsBootstrapToken ?? flags.token;
  if (flags.discoveryFile === undefined && (endpoint === undefined || discoveryToken === undefined))
    throw new UsageFailure(
      "give an API server and --token (coxswain token create --print-join-command prints the line), or --discovery-file",
    );
  return {
    discovery: {
      ...(flags.discoveryFile === undefined
        ? {
            bootstrapToken: {
              token: discoveryToken!,
              apiServerEndpoint: endpoint!,
              caCertHashes: flags.discoveryTokenCaCertHash ?? [],
              unsafeSkipCAVerification: flags.discoveryTokenUnsafeSkipCaVerification === true,
            },
          }
        : { file: { kubeConfigPath: flags.discoveryFile } }),
      ...(tlsToken !== undefined && { tlsBootstrapToken: tlsToken }),
    },
    ...(flags.controlPlane === true && {
      controlPlane: {
        ...(flags.certificateKey !== undefined && { certificateKey: flags.certificateKey }),
        localAPIEndpoint: {
          ...(flags.apiserverAdvertiseAddress !== undefined && { advertiseAddress: flags.apiserverAdvertiseAddress }),
          ...(flags.apiserverBindPort !== undefined && { bindPort: flags.apiserverBindPort }),
        },
      },
    }),
  };
}

const discoveryByToken = (endpoint: string | undefined, flags: ClusterFlags): Readonly<Record<string, unknown>> => ({
  endpoint,
  "discovery-token": flags.discoveryToken,
  "discovery-token-ca-cert-hash": flags.discoveryTokenCaCertHash,
  "discovery-token-unsafe-skip-ca-verification": flags.discoveryTokenUnsafeSkipCaVerification,
});

/** A verified cluster, and the token for requests to it. */
type Trusted = Discovered & { readonly token: string };

async function discovered({ discovery = {}, caCertPath }: Document<"JoinConfiguration">): Promise<Trusted> {
  if (caCertPath !== undefined && caCertPath !== "" && caCertPath !== pkiFile("ca.crt"))
    throw new UsageFailure(`JoinConfiguration.caCertPath: only ${pkiFile("ca.crt")} is supported`);
  const { bootstrapToken, file, tlsBootstrapToken } = discovery;
  const timeoutMs = parseDuration(discovery.timeout ?? "5m");
  if (timeoutMs === undefined)
    throw new UsageFailure(`JoinConfiguration.discovery.timeout: ${discovery.timeout} is not a duration such as 5m0s`);
  if (file?.kubeConfigPath !== undefined) {
    const path = file.kubeConfigPath;
    const text = readText(path);
    const found = discoveredIn(text, path);
    const token = tlsBootstrapToken ?? tokenIn(text);
    if (token === undefined) throw new UsageFailure(`${path} has no token: give --tls-bootstrap-token`);
    parseToken(token);
    return { ...found, token };
  }
  const { token = "", apiServerEndpoint = "", caCertHashes = [], unsafeSkipCAVerification = false } = bootstrapToken ?? {};
  const parsed = parseToken(token);
  if (apiServerEndpoint === "")
    throw new UsageFailure("JoinConfiguration.discovery.bootstrapToken.apiServerEndpoint: is missing");
  if (caCertHashes.length === 0 && !unsafeSkipCAVerification)
    throw new UsageFailure(
      "give --discovery-token-ca-cert-hash, by which the cluster is known; or, to trust every server that knows the token, --discovery-token-unsafe-skip-ca-verification",
    );
  const found = await discover({ endpoint: apiServerEndpoint, token: parsed, hashes: caCertHashes, timeoutMs });
  if (tlsBootstrapToken !== undefined) parseToken(tlsBootstrapToken);
  // The address on the command line works; the one in cluster-info may belong to a machine that no longer exists.
  return { ...found, server: `https://${apiServerEndpoint}`, token: tlsBootstrapToken ?? token };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (err) {
    throw new UsageFailure(`cannot read ${path}: ${messageOf(err)}`);
  }
}

function tokenIn(text: string): string | undefined {
  try {
    return parseKubeconfig(text).token;
  } catch {
    return undefined; // without a context
  }
}

/** Read from the cluster with the bootstrap token. */
interface Known extends StoredConfiguration {
  readonly servicesToken: string | undefined;
  /** The encrypted certificates; only for control plane machines. */
  readonly sealed: Readonly<Record<string, string>> | undefined;
}

async function readCluster({ server, caPem, token }: Trusted, isControlPlane: boolean): Promise<Known> {
  const client = newClient({ host: server, ca: caPem, token, qps: -1, userAgent: userAgentOf("coxswain") });
  try {
    const stored = await storedConfiguration(client);
    if (stored === undefined)
      throw new Failure(
        `the cluster has no ConfigMaps ${kubeadmConfigName} and ${kubeletConfigName} in kube-system: was it made by coxswain init or kubeadm 1.23?`,
      );
    return {
      ...stored,
      servicesToken: await servicesTokenOf(client),
      sealed: isControlPlane ? (await readObject<Secret>(client, "secrets", certificatesSecretName))?.data : undefined,
    };
  } finally {
    client.close();
  }
}

/** The Secret's data is written a moment after the Secret is created. */
async function servicesTokenOf(client: Client): Promise<string | undefined> {
  const secret = await readObject<Secret>(client, "secrets", servicesTokenName);
  if (secret === undefined) return undefined;
  const token = await until(async () => (await readObject<Secret>(client, "secrets", servicesTokenName))?.data?.["token"], {
    timeoutMs: 60_000,
    what: `the controller manager to write a token into Secret kube-system/${servicesTokenName}`,
  });
  return Buffer.from(token, "base64").toString();
}

function nodeSteps(kubelet: Readonly<Record<string, unknown>>, credentials: Credentials): Step<Machine>[] {
  const { servicesToken, isBehindProxy } = credentials;
  const services = servicesToken === undefined ? [] : [servicesStep(isBehindProxy)];
  const start = [kubeletStep({ configuration: () => kubelet, hasServingCertificate: false }), tlsBootstrapStep];
  // The kubelet reaches the API through coxswain-services, or else coxswain-services needs the kubelet's Node.
  return [installStep, credentialsStep(credentials), ...(isBehindProxy ? [...services, ...start] : [...start, ...services])];
}

/** @param server an API server that already responds */
const controlPlaneSteps = (
  kubelet: Readonly<Record<string, unknown>>,
  shared: readonly WantedFile[],
  server: string,
): Step<Machine>[] => [
  installStep,
  downloadStep(shared),
  certsStep,
  etcdJoinStep(() => etcdUrls(server)),
  daemonsStep,
  kubeletStep({ configuration: () => kubelet, hasServingCertificate: true }),
  markControlPlaneStep,
  servicesStep(false),
  renewalStep,
];

const downloadStep = (files: readonly WantedFile[]): Step<Machine> => ({
  name: "download-certs",
  missing() {
    const others = files.filter(({ path, content }) => (readIfThere(path) ?? content) !== content).map(({ path }) => path);
    if (others.length > 0) throw new Failure(`${others.join(", ")} belong to another cluster: remove them with coxswain reset`);
    return missingFiles(files);
  },
  run: () => writeFiles(files),
});

/** @throws Failure when the certificates are neither in the cluster's Secret nor on this machine */
function sharedCertificates(sealed: Readonly<Record<string, string>> | undefined, key: Buffer | undefined): WantedFile[] {
  if (key === undefined || sealed === undefined) {
    const missing = sharedFiles.map(pkiFile).filter((path) => readIfThere(path) === undefined);
    if (missing.length === 0) return [];
    throw new Failure(
      key === undefined
        ? `give --certificate-key, or copy ${missing.join(", ")} from a machine of the control plane`
        : "the cluster has no sealed certificates (any more: they end after two hours): run coxswain init --upload-certs again on a machine of the control plane, and take its key",
    );
  }
  return [...openedFiles(sealed, key)].map(([file, content]) => ({
    path: pkiFile(file),
    content: content.toString(),
    mode: file.endsWith(".key") ? 0o600 : 0o644,
  }));
}

const requestMs = 30_000;

/** The etcd members' URLs: one on the machine of each API server. */
async function etcdUrls(server: string): Promise<string[]> {
  const client = await clientBy(adminConf, server);
  try {
    const signal = AbortSignal.timeout(requestMs);
    const { subsets = [] } = await client.get<Endpoints>(endpoints, { namespace: "default", name: "kubernetes" }, { signal });
    return subsets.flatMap(({ addresses = [] }) => addresses.map(({ ip }) => urlOf(ip ?? "", 2379)));
  } finally {
    client.close();
  }
}
