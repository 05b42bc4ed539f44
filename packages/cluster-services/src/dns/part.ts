import { isIPv4 } from "node:net";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { bigIntToIp, ipToBigInt } from "@coxswain/apimachinery/objects/meta/ip";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Part, PartContext } from "../part.ts";
import { clusterNetworks } from "./clients.ts";
import { newClusterView } from "./cluster-view.ts";
import { newDnsMetrics } from "./metrics.ts";
import { newPublisher } from "./publish.ts";
import { watchedUpstreams } from "./resolv-conf.ts";
import { startDnsServer } from "./server.ts";

/** How long the end of the process waits for the API server. */
const withdrawMs = 2_000;

/**
 * Answers the cluster's names on this node. It listens on the node's own addresses, which every network that reaches Services
 * reaches too, and answers only clients from the networks of pods and nodes.
 */
export async function startDns(context: PartContext, startServer = startDnsServer): Promise<Part> {
  const { informers, client, reconnection, nodeName, flags, log, clock, signal, fail } = context;
  const view = newClusterView(informers);
  const nodeInformer = informers.for<Node>(nodes);
  const serviceInformer = informers.for<Service>(services);
  await Promise.all([nodeInformer, serviceInformer].map((informer) => informer.waitForSync(signal)));
  const node = nodeInformer.lister.get(nodeName);
  if (node === undefined) throw new Error(`there is no Node ${nodeName} yet`);
  const addresses = internalAddresses(node);
  if (addresses.length === 0) throw new Error(`the Node ${nodeName} has no address of type InternalIP yet`);
  const ip = flags["cluster-dns"] || tenthAddress(serviceInformer.lister.get("default/kubernetes"));
  const server = await startServer({
    addresses,
    port: flags["dns-port"],
    zone: {
      domain: flags["cluster-domain"].toLowerCase().replace(/\.$/, ""),
      dnsAddresses: [ip],
      podRecords: true,
      serial: Math.floor(clock.now() / 1000),
    },
    view,
    upstreams: watchedUpstreams(flags["resolv-conf"], clock),
    log,
    clock,
    metrics: newDnsMetrics(context.metrics),
    signal,
  });
  let networks = "";
  const nodesChanged = (): void => {
    const cidrs = [...clusterNetworks(nodeInformer.lister.list()), ...flags["dns-client-cidrs"]];
    if (cidrs.join() === networks) return;
    networks = cidrs.join();
    server.allow(cidrs);
  };
  nodesChanged();
  const nodeChanged = (now: Node): void => {
    nodesChanged();
    if (now.metadata.name !== nodeName) return;
    const isOther = internalAddresses(now).join() !== addresses.join() || now.metadata.uid !== node.metadata.uid;
    if (isOther) fail(new Error(`the Node ${nodeName} has changed its addresses`));
  };
  nodeInformer.addHandler({ added: nodeChanged, updated: (_, now) => nodeChanged(now), deleted: nodesChanged });
  const publisher = newPublisher({
    ...{ client, reconnection },
    services: serviceInformer,
    slices: informers.for<EndpointSlice>(endpointSlices),
    node,
    listening: addresses.map((address) => ({ address, port: server.port })),
    ...{ ip, log, clock },
  });
  const publishing = publisher.run(signal).catch(fail);
  log.info("Serving DNS", { addresses: addresses.join(), port: server.port, service: ip });
  return {
    check() {
      if (!view.isSynced) throw new Error("Services are not known yet");
      if (server.isLoop) throw new Error("DNS forwarding loop: the node's resolver sends queries to this server");
      if (publisher.problem !== undefined) throw new Error(publisher.problem);
    },
    async stop() {
      await publishing;
      await publisher.withdraw(AbortSignal.timeout(withdrawMs)).catch((err: unknown) => {
        log.warn("cannot delete the EndpointSlice of this DNS server", { err: String(messageOf(err)) });
      });
      await server.close();
    },
  };
}

/** The first address of each family. */
function internalAddresses({ status }: Node): string[] {
  const all = (status?.addresses ?? []).filter(({ type }) => type === "InternalIP").map(({ address }) => address);
  const first = [all.find(isIPv4), all.find((address) => !isIPv4(address))];
  return first.filter((address) => address !== undefined);
}

/**
 * The tenth address of the range of cluster IPs, as kubeadm and most installers choose it; the first is the API server's.
 * @throws Error without a Service kubernetes
 */
function tenthAddress(kubernetes: Service | undefined): string {
  const first = kubernetes?.spec?.clusterIP;
  if (!first) throw new Error("there is no Service default/kubernetes yet, from which --cluster-dns follows");
  return bigIntToIp(ipToBigInt(first) + 9n, isIPv4(first) ? 4 : 6);
}
