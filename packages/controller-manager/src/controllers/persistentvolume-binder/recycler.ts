import type { Client } from "@coxswain/apimachinery/client/client";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Event, PersistentVolume, Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { events, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { sizeOf } from "@coxswain/apimachinery/volumes/matching";
import type { RecyclerConfig } from "../../config/volumes.ts";

/** Callback for Events of the recycler Pod. */
type ReportProgress = (type: "Normal" | "Warning", message: string) => void;

/**
 * Scrubs a volume with a recycler Pod and waits for its completion. The Pod is deleted in every case.
 * @throws Error with upstream's text when it did not succeed
 * Source: pkg/volume/util/recyclerclient
 */
export async function recycleByPod(
  client: Client,
  volume: PersistentVolume,
  config: RecyclerConfig,
  report: ReportProgress,
  signal: AbortSignal,
): Promise<void> {
  const pod = recyclerPod(volume, config);
  const { namespace, name = "" } = pod.metadata;
  const remove = async (): Promise<void> => {
    try {
      await client.delete(pods, { namespace, name }, { signal });
    } catch (err) {
      if (!isNotFound(err)) throw err;
    }
  };
  let created: Pod;
  try {
    created = await client.create<Pod>(pods, pod, { signal });
  } catch (err) {
    if (!isAlreadyExists(err)) throw new Error(`unexpected error creating recycler pod:  ${messageOf(err)}`, { cause: err });
    // Left over from another process or created by a user to block recycling; the two cases cannot be distinguished.
    try {
      await remove();
    } catch (cause) {
      throw new Error(`failed to delete old recycler pod ${namespace}/${name}: ${messageOf(cause)}`, { cause });
    }
    throw new Error("old recycler pod found, will retry later");
  }
  const eventsEnd = new AbortController();
  const forwarded = forwardEvents(client, created, report, AbortSignal.any([signal, eventsEnd.signal]));
  let failure: unknown;
  try {
    await waitForEnd(client, created, signal);
  } catch (err) {
    failure = err;
  }
  eventsEnd.abort();
  await forwarded;
  try {
    await remove();
  } catch (err) {
    if (failure === undefined) throw new Error(`failed to delete recycler pod: ${messageOf(err)}`, { cause: err });
  }
  if (failure !== undefined) throw new Error(`failed to recycle volume: ${messageOf(failure)}`, { cause: failure });
}

/** The Pod template with the volume inserted, named after the volume, with a deadline according to its size. */
export function recyclerPod(volume: PersistentVolume, config: RecyclerConfig): Pod {
  const { template, minimumTimeoutSeconds, timeoutIncrementSeconds } = config;
  const { generateName: _, ...metadata } = template.metadata;
  const [first, ...others] = template.spec.volumes ?? [];
  const { hostPath, nfs } = volume.spec;
  const source: Partial<Volume> =
    hostPath !== undefined
      ? { hostPath: { path: hostPath.path } }
      : { nfs: { server: nfs?.server ?? "", path: nfs?.path ?? "" } };
  const gibibytes = Math.floor(sizeOf(volume).value() / 2 ** 30);
  return {
    ...template,
    metadata: { ...metadata, name: `recycler-for-${volume.metadata.name}` },
    spec: {
      ...template.spec,
      activeDeadlineSeconds: Math.max(minimumTimeoutSeconds, gibibytes * timeoutIncrementSeconds),
      volumes: [{ name: first?.name ?? "vol", ...source }, ...others],
    },
  };
}

/**
 * Resolves when the Pod has succeeded.
 * @throws Error when it failed or was deleted
 */
async function waitForEnd(client: Client, created: Pod, signal: AbortSignal): Promise<void> {
  const { namespace, name = "", uid } = created.metadata;
  const fieldSelector = `metadata.name=${name}`;
  let pod = created;
  for (;;) {
    const { resourceVersion } = pod.metadata;
    for await (const { type, object } of client.watch<Pod>(pods, { namespace }, { resourceVersion, fieldSelector, signal })) {
      if (type === "DELETED") throw new Error("recycler pod was deleted");
      if (hasSucceeded(object)) return;
    }
    // The API server closes watches after a timeout.
    pod = await client.get<Pod>(pods, { namespace, name }, { signal });
    if (pod.metadata.uid !== uid) throw new Error("recycler pod was deleted");
    if (hasSucceeded(pod)) return;
  }
}

function hasSucceeded({ status }: Pod): boolean {
  if (status?.phase === "Failed") throw new Error(status.message || "pod failed, pod.Status.Message unknown");
  return status?.phase === "Succeeded";
}

/** Forwards the Pod's Events. Best effort: errors end it silently. */
async function forwardEvents(client: Client, pod: Pod, report: ReportProgress, signal: AbortSignal): Promise<void> {
  const { namespace, name, resourceVersion } = pod.metadata;
  const fieldSelector = `involvedObject.name=${name}`;
  try {
    for await (const { type, object } of client.watch<Event>(events, { namespace }, { resourceVersion, fieldSelector, signal })) {
      if (type === "ADDED") report(object.type === "Warning" ? "Warning" : "Normal", object.message ?? "");
    }
  } catch {
    // The watch was aborted when the Pod ended, or reading Events is forbidden.
  }
}
