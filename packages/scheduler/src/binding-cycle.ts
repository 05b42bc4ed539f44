import type { PodInfo } from "./cache/node-info.ts";
import type { CycleState } from "./framework/cycle-state.ts";
import type { Plugin } from "./framework/extension-points.ts";
import type { Profile } from "./framework/profile.ts";
import type { Status } from "./framework/status.ts";

/**
 * permit → pre-bind → bind → post-bind for a pod that is assumed on its node. When one refuses, what was reserved is
 * given back, in reverse order.
 * @returns the refusal, undefined when the pod is bound.
 */
export async function bindPod(profile: Profile, state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined> {
  const refusal = await firstRefusal(profile.plugins, pod, state, nodeName);
  if (refusal !== undefined) {
    unreserve(profile, state, pod, nodeName);
    return refusal;
  }
  for (const plugin of profile.plugins) plugin.postBind?.(state, pod, nodeName);
  return undefined;
}

/** @returns the first refusal, after giving back what others reserved. */
export function reserve(profile: Profile, state: CycleState, pod: PodInfo, nodeName: string): Status | undefined {
  for (const plugin of profile.plugins) {
    const status = plugin.reserve?.(state, pod, nodeName);
    if (status === undefined) continue;
    unreserve(profile, state, pod, nodeName);
    return { ...status, plugin: plugin.name };
  }
  return undefined;
}

function unreserve(profile: Profile, state: CycleState, pod: PodInfo, nodeName: string): void {
  for (const plugin of profile.plugins.toReversed()) plugin.unreserve?.(state, pod, nodeName);
}

async function firstRefusal(
  plugins: readonly Plugin[],
  pod: PodInfo,
  state: CycleState,
  nodeName: string,
): Promise<Status | undefined> {
  for (const point of ["permit", "preBind"] as const) {
    for (const plugin of plugins) {
      const status = await plugin[point]?.(state, pod, nodeName);
      if (status !== undefined) return { ...status, plugin: plugin.name };
    }
  }
  for (const plugin of plugins) {
    if (plugin.bind === undefined) continue;
    const status = await plugin.bind(state, pod, nodeName);
    if (status?.code === "Skip") continue;
    return status === undefined ? undefined : { ...status, plugin: plugin.name };
  }
  return { code: "Error", reasons: ["no plugin binds the pod"] };
}
