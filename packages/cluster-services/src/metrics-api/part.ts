import { newClient } from "@coxswain/apimachinery/client/client";
import { type ClientConfig, userAgentOf } from "@coxswain/apimachinery/client/config";
import { configFromFlags } from "@coxswain/apimachinery/client/in-cluster";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { privilegedGroup } from "@coxswain/apimachinery/serving/authentication/user";
import { pairOfTemporaryAuthority } from "@coxswain/apimachinery/serving/certificates-aside";
import { delegatedAuthentication } from "@coxswain/apimachinery/serving/delegated/authentication";
import { delegatedAuthorization } from "@coxswain/apimachinery/serving/delegated/authorization";
import { openTrust } from "@coxswain/apimachinery/serving/delegated/trust";
import type { Part, PartContext } from "../part.ts";
import { newScraper, periodMs } from "./kubelets.ts";
import { serviceName, serviceNamespace } from "./names.ts";
import { keepRegistered, register } from "./register.ts";
import { startMetricsServer } from "./server.ts";
import { newUsageStore } from "./usage-store.ts";

const certificateDays = 365;

/**
 * Serves metrics.k8s.io, where the lease is held: kubelets are queried once for the cluster, and another process that takes over
 * has metrics again after two rounds.
 */
export async function startMetricsApi(context: PartContext): Promise<Part> {
  const { informers, nodeName, flags, log, clock, signal, metrics, client, fail } = context;
  const nodeInformer = informers.for<Node>(nodes);
  const podInformer = informers.for<KubeObject>(pods, { metadataOnly: true });
  await Promise.all([nodeInformer, podInformer].map((informer) => informer.waitForSync(signal)));
  const address = nodeInformer.lister.get(nodeName)?.status?.addresses?.find(({ type }) => type === "InternalIP")?.address;
  if (address === undefined) throw new Error(`the Node ${nodeName} has no address of type InternalIP yet`);
  const config = await configFromFlags(flags.kubeconfig, flags.master);
  const store = newUsageStore();
  const scraper = newScraper({
    nodes: () => nodeInformer.lister.list(),
    newClient: (url) => newClient(kubeletConfig(config, url, flags)),
    ...{ store, clock, log, metrics },
  });
  const trust = await openTrust({ flags: { ...flags, "authentication-skip-lookup": false }, client, clock, log, signal });
  const ttl = { authorizedTtlMs: 10_000, unauthorizedTtlMs: 10_000 };
  const pair = await pairOfTemporaryAuthority({
    ...{ authority: `${serviceName}-ca`, commonName: serviceName, validDays: certificateDays },
    ...{ dnsNames: [`${serviceName}.${serviceNamespace}.svc`], ips: [address] },
  });
  const server = await startMetricsServer({
    address,
    port: flags["metrics-api-port"],
    cert: pair.certPem,
    key: pair.keyPem,
    authenticate: delegatedAuthentication({ trust, client, tokenTtlMs: 10_000, anonymous: true, clock, metrics }),
    authorize: delegatedAuthorization({
      ...{ client, clock, metrics, ...ttl },
      alwaysAllowGroups: [privilegedGroup],
      alwaysAllowPaths: [],
    }),
    inventory: { nodes: nodeInformer.lister, pods: podInformer.lister },
    ...{ store, log, clock },
  });
  const scraping = scraper.run(signal);
  const registered = keepRegistered({
    register: () => register(client, { address, port: server.port, caPem: pair.caPem }, signal),
    ...{ clock, log, signal, fail },
  });
  return {
    check() {
      registered.check();
      if (scraper.lastRound === undefined) throw new Error("no kubelet has been queried yet");
      if (clock.monotonic() - scraper.lastRound > 4 * periodMs) throw new Error("no kubelet has been queried for a minute");
    },
    async stop() {
      await Promise.all([scraping, registered.ended]);
      await server.close(1_000);
    },
  };
}

interface KubeletFlags {
  readonly "kubelet-certificate-authority": string;
  readonly "kubelet-insecure-tls": boolean;
}

/** Pure: the process's own credentials, for another server; by default its certificate is from the cluster's authority. */
export function kubeletConfig(config: ClientConfig, url: string, flags: KubeletFlags): ClientConfig {
  const { ca, caFile, serverName: _, proxyUrl: __, contentType: ___, ...credentials } = config;
  const own = flags["kubelet-certificate-authority"];
  const trusted = flags["kubelet-insecure-tls"] ? { insecure: true } : own === "" ? { ca, caFile } : { caFile: own };
  return { ...credentials, ...trusted, host: url, qps: -1, userAgent: userAgentOf("coxswain-services", "metrics-api") };
}
