import type { ConfigMap, ConfigMapNodeConfigSource, Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Checkpoints } from "./checkpoints.ts";
import { type ConfigSource, sameSource } from "./config-source.ts";
import { problems, SyncProblem } from "./problems.ts";

/**
 * Downloads and assigns the configuration that the node's `spec.configSource` names.
 * @param download reads the current config map
 * @returns whether the assignment has changed, and the new source (undefined for the local configuration)
 * @throws SyncProblem; the previous assignment is kept
 * Source: pkg/kubelet/kubeletconfig/configsync.go syncConfigSource
 */
export async function takeOver(
  node: Node | undefined,
  checkpoints: Checkpoints,
  download: (map: ConfigMapNodeConfigSource) => Promise<ConfigMap>,
): Promise<{ changed: boolean; source: ConfigSource | undefined }> {
  if (node === undefined) throw new SyncProblem(problems.internal, new Error("the node is not known yet"));
  const wanted = node.spec?.configSource;
  if (!wanted) return { changed: kept(() => checkpoints.reset()), source: undefined };
  const map = wanted.configMap;
  if (!map) throw new SyncProblem(problems.nothingNamed, new Error(JSON.stringify(wanted)));
  const found = await download(map).catch((err: unknown) => {
    throw new SyncProblem(problems.download, err);
  });
  const { uid = "", resourceVersion = "" } = found.metadata;
  const { namespace, name, kubeletConfigKey } = map;
  const source: ConfigSource = { configMap: { namespace, name, uid, resourceVersion, kubeletConfigKey } };
  return kept(() => {
    if (!checkpoints.has(source)) checkpoints.save(found);
    const before = checkpoints.read("assigned");
    // Also when unchanged: the write restarts the trial period, so that an agent in a restart loop never completes it.
    checkpoints.write("assigned", source);
    return { changed: !sameSource(before, source), source };
  });
}

function kept<T>(work: () => T): T {
  try {
    return work();
  } catch (err) {
    throw new SyncProblem(problems.internal, err);
  }
}
