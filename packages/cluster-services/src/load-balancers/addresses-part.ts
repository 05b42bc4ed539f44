import type { Node, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { identityOf } from "../host/identity.ts";
import type { Part, PartContext } from "../part.ts";
import { candidatesFor, hostPortConflicts } from "./announcements.ts";
import { Announcer } from "./announcer.ts";
import { type AddressHost, releaseAddresses, thisMachine } from "./local-addresses.ts";
import { newAnnouncerMetrics } from "./metrics.ts";
import { byServiceIndex, readyNodes, serviceOf } from "./part.ts";
import { poolOf } from "./settings.ts";

/**
 * Announces addresses of the pool on this node, and warns users of host ports that Services take.
 * @param host for tests; default this machine
 */
export async function startLoadBalancerAddresses(context: PartContext, host: AddressHost = thisMachine): Promise<Part> {
  const pool = poolOf(context.flags);
  return pool.isEmpty ? startHostPortWatch(context) : startAnnouncer(context, host);
}

async function startAnnouncer(context: PartContext, host: AddressHost): Promise<Part> {
  const { flags, informers, nodeName, signal, clock, log, client, reconnection, fail } = context;
  const pool = poolOf(flags);
  const serviceInformer = informers.for<Service>(services);
  const sliceInformer = informers.for<EndpointSlice>(endpointSlices);
  const nodeInformer = informers.for<Node>(nodes, { fieldSelector: `metadata.name=${nodeName}` });
  sliceInformer.addIndex(byServiceIndex, serviceOf);
  await Promise.all([serviceInformer, sliceInformer, nodeInformer].map((informer) => informer.waitForSync(signal)));
  const announcer = new Announcer({
    ...{ client, reconnection, log, clock, host, chainPrefix: flags["iptables-chain-prefix"] },
    identity: identityOf(nodeName),
    nodeAddresses: () => (nodeInformer.lister.get(nodeName)?.status?.addresses ?? []).map(({ address }) => address),
    metrics: newAnnouncerMetrics(context.metrics),
  });
  const candidates = (): ReadonlySet<string> =>
    candidatesFor({
      ...{ nodeName, pool, services: serviceInformer.lister.list(), node: nodeInformer.lister.get(nodeName) },
      nodesWithEndpoints: (key) => readyNodes(sliceInformer.lister.byIndex(byServiceIndex, key)),
    });
  const changed = (): void => announcer.set(candidates(), signal);
  // Addresses of Services that were deleted while no process ran; the kernel would keep them for some seconds more.
  await releaseAddresses(pool, host.run, candidates()).catch((err: unknown) =>
    log.error("cannot remove the addresses of an earlier process", err),
  );
  const stopGathering = gathered(context, changed, [serviceInformer, sliceInformer, nodeInformer]);
  const running = announcer.run(signal).catch(fail);
  return {
    check: () => announcer.check(),
    async stop() {
      stopGathering();
      await running;
    },
  };
}

async function startHostPortWatch(context: PartContext): Promise<Part> {
  const { informers, nodeName, recorder, signal } = context;
  const serviceInformer = informers.for<Service>(services);
  const nodeInformer = informers.for<Node>(nodes, { fieldSelector: `metadata.name=${nodeName}` });
  const podInformer = informers.for<Pod>(pods, { fieldSelector: `spec.nodeName=${nodeName}` });
  await Promise.all([serviceInformer, nodeInformer, podInformer].map((informer) => informer.waitForSync(signal)));
  let reported = new Set<string>();
  const changed = (): void => {
    const node = nodeInformer.lister.get(nodeName);
    const conflicts = node === undefined ? [] : hostPortConflicts(serviceInformer.lister.list(), podInformer.lister.list(), node);
    for (const { service, message } of conflicts) {
      if (reported.has(message)) continue;
      recorder.event({ ...service, apiVersion: "v1", kind: "Service" }, "Warning", "HostPortConflict", message);
    }
    reported = new Set(conflicts.map(({ message }) => message));
  };
  const stopGathering = gathered(context, changed, [serviceInformer, nodeInformer, podInformer]);
  return {
    async stop() {
      stopGathering();
    },
  };
}

const gatherMs = 200;

interface Watched {
  addHandler(handler: { added(): void; updated(): void; deleted(): void }): unknown;
}

/** Calls `work` soon after changes that come together, and once at the start. @returns ends it */
function gathered({ clock, log }: PartContext, work: () => void, informers: readonly Watched[]): () => void {
  let timer: { cancel(): void } | undefined;
  const now = (): void => {
    timer = undefined;
    try {
      work();
    } catch (err) {
      log.error("cannot apply a change of Services or Nodes", err);
    }
  };
  const changed = (): void => {
    timer ??= clock.after(gatherMs, now);
  };
  for (const informer of informers) informer.addHandler({ added: changed, updated: changed, deleted: changed });
  changed();
  return () => timer?.cancel();
}
