import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { AgentConfig } from "./agent-config.ts";
import type { PodSources } from "./sources/merge.ts";
import type { StatusManager } from "./status/status-manager.ts";

/** Changes for `--runonce`: no API server and no HTTP servers. */
export const runOnceConfig = (config: AgentConfig): AgentConfig => ({
  ...config,
  kubeconfig: "",
  bootstrapKubeconfig: "",
  enableServer: false,
  readOnlyPort: 0,
  healthzPort: 0,
});

/** Names of wanted Pods that neither run nor have succeeded; undefined until all Pod sources have reported. */
export function pendingPods(sources: PodSources, status: Pick<StatusManager, "get">): readonly string[] | undefined {
  if (!sources.allSynced()) return undefined;
  return sources
    .list()
    .filter(({ metadata }) => !["Running", "Succeeded"].includes(status.get(metadata.uid)?.phase ?? ""))
    .map(({ metadata }) => `${metadata.name}_${metadata.namespace}`);
}

const firstDelayMs = 1_000;
const mostLooks = 10;

/**
 * Waits until all static Pods run; they keep running after the agent has ended.
 * @param pending names of Pods that do not run yet; undefined until all Pod sources have reported
 * @throws Error that names the Pods that do not run after ten checks with doubling delays
 * Source: pkg/kubelet/runonce.go
 */
export async function waitUntilRunning(
  pending: () => readonly string[] | undefined,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let left = pending();
  let delayMs = firstDelayMs;
  for (let look = 0; look < mostLooks && left?.length !== 0 && !signal.aborted; look++) {
    await clock.sleep(delayMs, signal).catch(() => undefined);
    left = pending();
    delayMs *= 2;
  }
  if (signal.aborted || left?.length === 0) return;
  if (left === undefined) throw new Error("no pod manifest update after 1s");
  throw new Error(`runonce failed: error running pods: [${left.join(" ")}]`);
}
