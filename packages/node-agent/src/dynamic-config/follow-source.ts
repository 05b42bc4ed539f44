import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ConfigMap, ConfigMapNodeConfigSource, NodeConfigSource } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Checkpoints } from "./checkpoints.ts";
import type { ConfigReport } from "./config-report.ts";
import { type ConfigSource, showSource } from "./config-source.ts";
import type { FollowOptions } from "./follow-options.ts";
import { SyncProblem } from "./problems.ts";
import { takeOver } from "./take-over.ts";

interface FollowSourceOptions extends Pick<FollowOptions, "nodeName" | "notify" | "background"> {
  api: NonNullable<FollowOptions["api"]>;
  /** The source that the agent was started with. */
  assigned: NodeConfigSource | undefined;
  checkpoints: Checkpoints;
  report: ConfigReport;
  clock: Clock;
  log: Logger;
  /** Called when another configuration is assigned and the event was sent. */
  onReplaced: () => void;
}

const syncMs = 10_000;
const lastEventMs = 10_000;

/**
 * Follows the node's `spec.configSource` and the config map, and assigns the new configuration on changes.
 * Source: pkg/kubelet/kubeletconfig/watch.go, configsync.go
 */
export function followConfigSource(options: FollowSourceOptions): void {
  const { api, nodeName, checkpoints, report, background, clock, log } = options;
  /** Set when something changed, and while the last change could not be applied. */
  let due = false;
  const look = (): void => {
    due = true;
  };
  api.node.addHandler({
    added: look,
    updated: (old, now) => {
      if (!semanticEqual(old.spec?.configSource, now.spec?.configSource)) look();
    },
  });
  const cached = followMap(options, look);
  const download = async (map: ConfigMapNodeConfigSource): Promise<ConfigMap> =>
    cached(map) ?? api.client.get<ConfigMap>(configMaps, map, { signal: background.signal });

  background.every(syncMs, "configuration of the cluster's", async () => {
    if (!due) return;
    due = false;
    try {
      const { changed, source } = await takeOver(api.node.lister.get(nodeName), checkpoints, download);
      report.setSyncError("");
      if (changed) await end(source);
    } catch (err) {
      due = true;
      if (err instanceof SyncProblem) report.setSyncError(err.shown);
      throw err;
    }
  });

  /** Records the event, waits until it is sent (at most 10 s), then calls `onReplaced`. */
  async function end(source: ConfigSource | undefined): Promise<void> {
    const next = source && `${showSource(source)}, KubeletConfigKey: ${source.configMap.kubeletConfigKey}`;
    const message = `Kubelet restarting to use ${next ?? "local config"}`;
    log.info(message);
    options.notify.node("Normal", "KubeletConfigChanged", message);
    const reported = new AbortController();
    await Promise.race([api.recorder.flush(), clock.sleep(lastEventMs, reported.signal).catch(() => undefined)]);
    reported.abort();
    options.onReplaced();
  }
}

/** @returns a lookup in the informer's cache; undefined for config maps other than the assigned one */
function followMap(
  { api, assigned, background, clock, log }: FollowSourceOptions,
  look: () => void,
): (map: ConfigMapNodeConfigSource) => ConfigMap | undefined {
  const map = assigned?.configMap;
  if (map === undefined) return () => undefined;
  const informers = newInformerFactory(api.client, { log, clock, namespace: map.namespace });
  const informer = informers.for<ConfigMap>(configMaps, { fieldSelector: `metadata.name=${map.name}` });
  informer.addHandler({ added: look, updated: look, deleted: look });
  informers.start(background.signal);
  return ({ namespace, name }) => informer.lister.get(`${namespace}/${name}`);
}
