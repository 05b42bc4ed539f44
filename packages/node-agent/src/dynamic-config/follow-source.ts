import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { ConfigMap, ConfigMapNodeConfigSource, NodeConfigSource } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { configMaps } from "@coxswain/apimachinery/schema/kinds/resources";
import type { Checkpoints } from "./checkpoints.ts";
import type { ConfigReport } from "./config-report.ts";
import { type ConfigSource, showSource } from "./config-source.ts";
import type { FollowOptions } from "./dynamic-config.ts";
import { SyncProblem } from "./problems.ts";
import { takeOver } from "./take-over.ts";

export interface FollowSourceOptions extends Pick<FollowOptions, "nodeName" | "tell" | "background"> {
  api: NonNullable<FollowOptions["api"]>;
  /** What the agent was started for. */
  assigned: NodeConfigSource | undefined;
  checkpoints: Checkpoints;
  report: ConfigReport;
  clock: Clock;
  log: Logger;
  /** Another configuration is assigned, and the cluster has been told. */
  onReplaced: () => void;
}

const syncMs = 10_000;
const lastEventMs = 10_000;

/**
 * Takes over what the node's `spec.configSource` names whenever that, or the config map, changes.
 * Source: pkg/kubelet/kubeletconfig/watch.go, configsync.go
 */
export function followConfigSource(options: FollowSourceOptions): void {
  const { api, nodeName, checkpoints, report, background, clock, log } = options;
  /** Something has changed, or could not be taken over yet. */
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

  /** The last that is heard of this process. */
  async function end(source: ConfigSource | undefined): Promise<void> {
    const next = source && `${showSource(source)}, KubeletConfigKey: ${source.configMap.kubeletConfigKey}`;
    const message = `Kubelet restarting to use ${next ?? "local config"}`;
    log.info(message);
    options.tell.node("Normal", "KubeletConfigChanged", message);
    const told = new AbortController();
    await Promise.race([api.recorder.flush(), clock.sleep(lastEventMs, told.signal).catch(() => undefined)]);
    told.abort();
    options.onReplaced();
  }
}

/** @returns what is known of a config map; undefined for another one than that which is assigned */
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
