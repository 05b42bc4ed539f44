import { type FSWatcher, watch } from "node:fs";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Part, PartContext } from "../part.ts";
import { type PodNetworkHost, thisHost } from "./host.ts";
import { newPodNetworkMetrics } from "./metrics.ts";
import { internalAddresses } from "./plan.ts";
import { PodNetwork } from "./pod-network.ts";
import { podNetworkSettings } from "./settings.ts";

/**
 * Pod network: connects the pods of this node with each other, with those of other nodes and with the world.
 * @param host for tests; default this machine
 */
export async function startPodNetwork(context: PartContext, host: PodNetworkHost = thisHost): Promise<Part> {
  const { flags, informers, nodeName, recorder, log, clock, signal, fail } = context;
  const settings = podNetworkSettings(flags);
  const informer = informers.for<Node>(nodes);
  await informer.waitForSync(signal);
  await makeFolder(settings.configFolder, 0o755);
  const network = new PodNetwork({
    ...{ nodeName, settings, host, log, clock, turns: context.turns },
    nodes: () => informer.lister.list(),
    notify: (type, reason, message) =>
      recorder.event({ apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName }, type, reason, message),
    metrics: newPodNetworkMetrics(context.metrics),
  });
  informer.addHandler({
    added: () => network.changed(),
    updated(old, now) {
      if (factsOf(old) !== factsOf(now)) network.changed(); // not its heartbeats
    },
    deleted: () => network.changed(),
  });
  const watcher = watchFolder(settings.configFolder, () => network.changed());
  const running = network.run(signal).catch(fail);
  return {
    check: () => network.check(),
    // The network stays: a restart must not end connections. `--cleanup` removes it, and a process without this part.
    async stop() {
      watcher?.close();
      await running;
    },
  };
}

const factsOf = (node: Node): string =>
  JSON.stringify([node.metadata.uid, node.spec?.podCIDR, node.spec?.podCIDRs, internalAddresses(node)]);

/** @returns undefined where the kernel has no more watches: the folder is read periodically anyway */
function watchFolder(folder: string, changed: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, changed);
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}
