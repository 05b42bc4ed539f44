/** `coxswain init`: the first machine of a cluster. */
import { readFileSync } from "node:fs";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { Command } from "commander";
import { authorityHash } from "../cluster/authority-hash.ts";
import { forgetConfigurationStep, keepConfigurationStep } from "../cluster/begun-configuration.ts";
import { newCertificateKey, parseCertificateKey } from "../cluster/sealed-certificates.ts";
import {
  bootstrapTokenStep,
  markControlPlaneStep,
  servicesRightsStep,
  uploadCertificatesStep,
  uploadConfigStep,
} from "../cluster/steps.ts";
import { type BootstrapToken, dayMs, newToken, newTokenText } from "../cluster/tokens.ts";
import type { Documents } from "../config/documents.ts";
import type { Document } from "../config/fields.ts";
import { serverUrl } from "../config/settings.ts";
import { etcdDropIn, initialClusterIn } from "../control-plane/etcd-unit.ts";
import { type InitialCluster, peerUrl } from "../control-plane/flags.ts";
import { renewalStep } from "../control-plane/renewal.ts";
import { certsStep, daemonsStep, etcdStep, podsStep } from "../control-plane/steps.ts";
import { UsageFailure } from "../failure.ts";
import { readIfThere } from "../host/files.ts";
import { type Machine, pkiFile } from "../machine.ts";
import { installStep, kubeletStep, links, servicesStep } from "../node/steps.ts";
import { preflight } from "../preflight/preflight.ts";
import { runSteps, type Step } from "../steps.ts";
import { type InitFlags, initConfiguration } from "./init-configuration.ts";
import { type Archive, duration, list, newCommand, port, withSetUpFlags } from "./options.ts";

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
    .action((flags: InitFlags) => init(home, flags));

const stepNames =
  "install, certs, etcd, control-plane, kubelet-start, upload-config, upload-certs, mark-control-plane, bootstrap-token, addon, coxswain-services, certs-renewal";

async function init(home: string, flags: InitFlags): Promise<void> {
  const { requested, node, cluster, kubelet, begun } = await initConfiguration(flags);
  const print = (line: string): void => console.log(line);
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
  const steps = initSteps({
    ...{ staticPods: flags.staticPods, kubelet: () => kubelet, tokens, begun },
    ...(flags.uploadCerts && { certificateKey: key }),
  });
  await runSteps(steps, machine, { dryRun: flags.dryRun, skip, print });
  if (!flags.dryRun) printJoinLines(machine, tokens[0], flags.uploadCerts ? key : undefined);
}

interface InitOptions {
  readonly staticPods: boolean;
  readonly kubelet: () => Readonly<Record<string, unknown>>;
  readonly tokens: readonly BootstrapToken[];
  /** undefined: the certificates are not uploaded. */
  readonly certificateKey?: string;
  readonly begun: Documents | undefined;
}

/** The steps of `init`, in order. */
function initSteps({ staticPods, kubelet, tokens, certificateKey, begun }: InitOptions): Step<Machine>[] {
  // For a machine that has joined the cluster its unit lists other members, which only matter for etcd's first start.
  const alone = ({ node }: Machine): InitialCluster =>
    initialClusterIn(readIfThere(etcdDropIn)) ?? { state: "new", members: { [node.name]: peerUrl(node) } };
  const start = kubeletStep({ configuration: kubelet, hasServingCertificate: true });
  return [
    ...(begun === undefined ? [] : [keepConfigurationStep(begun)]),
    installStep,
    certsStep,
    // Static pods need a running kubelet; units are started before it.
    ...(staticPods ? [start, podsStep(alone)] : [etcdStep(alone), daemonsStep, start]),
    uploadConfigStep(kubelet),
    ...(begun === undefined ? [] : [forgetConfigurationStep]),
    ...(certificateKey === undefined ? [] : [uploadCertificatesStep(certificateKey)]),
    markControlPlaneStep,
    bootstrapTokenStep(tokens),
    servicesRightsStep,
    servicesStep(false),
    renewalStep,
  ];
}

/** @throws UsageFailure */
export function tokensOf(
  { bootstrapTokens }: Document<"InitConfiguration">,
  { token, tokenTtl }: Pick<InitFlags, "token" | "tokenTtl">,
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
    if (ttlMs === undefined) throw new UsageFailure(`${at}.ttl: ${requested.ttl} is not a duration such as 24h0m0s`);
    if (Number.isNaN(ttlMs))
      throw new UsageFailure(`${at}.expires: ${requested.expires} is not a time such as 2030-01-01T00:00:00Z`);
    if (ttlMs < 0)
      throw new UsageFailure(`${at}.${requested.expires === undefined ? "ttl" : "expires"}: the time of expiry is in the past`);
    const { usages, groups } = requested;
    return newToken({ token: requested.token ?? newTokenText(), description: requested.description, ttlMs, usages, groups, now });
  });
}

/** The commands to run on other machines. */
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
