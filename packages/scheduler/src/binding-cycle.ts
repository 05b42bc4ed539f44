import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { PodInfo } from "./cache/node-info.ts";
import type { Extender } from "./extenders/extender.ts";
import type { CycleState } from "./framework/cycle-state.ts";
import { type CycleTimer, untimed } from "./framework/cycle-timer.ts";
import { PluginError, type Status } from "./framework/status.ts";
import type { Profile } from "./profile.ts";

/**
 * Runs the Reserve plugins for a pod that is assumed on the node.
 * @throws PluginError (or an AggregateError that wraps it) for the first rejection, after all plugins were unreserved
 */
export function reserve(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  nodeName: string,
  { point }: CycleTimer = untimed,
): void {
  try {
    point("Reserve", () => {
      for (const plugin of profile.at.reserve) refuseWith("Reserve", plugin.name, plugin.reserve?.(state, pod, nodeName));
    });
  } catch (err) {
    throw unreserve(profile, state, pod, nodeName, point, err);
  }
}

/**
 * Calls `unreserve` of all plugins in reverse order. A plugin that throws does not stop the remaining ones.
 * @param cause the failure that triggered the rollback
 * @returns the cause, wrapped in an AggregateError when plugins threw during the rollback
 */
function unreserve(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  nodeName: string,
  point: CycleTimer["point"],
  cause: unknown,
): unknown {
  const failures: unknown[] = [];
  point("Unreserve", () => {
    for (const plugin of profile.at.reserve.toReversed()) {
      try {
        plugin.unreserve?.(state, pod, nodeName);
      } catch (err) {
        failures.push(err);
      }
    }
  });
  return failures.length === 0 ? cause : new AggregateError([cause, ...failures], messageOf(cause), { cause });
}

/** The stage that a binding cycle has reached. */
export interface BindingProgress {
  point: string;
  /** `""` between plugins. */
  plugin: string;
}

/**
 * Permit → PreBind → Bind → PostBind for a pod that is assumed on its node.
 * @returns errors thrown by PostBind plugins; the pod is bound nevertheless
 * @throws Error of the first plugin that rejects or fails, after all plugins were unreserved
 */
export async function bindPod(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  nodeName: string,
  extenders: readonly Extender[] = [],
  { point }: CycleTimer = untimed,
  progress: BindingProgress = { point: "", plugin: "" },
): Promise<readonly unknown[]> {
  const at = (point: string, plugin: string): string => {
    progress.point = point;
    progress.plugin = plugin;
    return plugin;
  };
  try {
    await point("Permit", async () => {
      for (const plugin of profile.at.permit)
        refuseWith("Permit", at("Permit", plugin.name), await plugin.permit?.(state, pod, nodeName));
    });
    await point("PreBind", async () => {
      for (const plugin of profile.at.preBind)
        refuseWith("PreBind", at("PreBind", plugin.name), await plugin.preBind?.(state, pod, nodeName));
    });
    at("Bind", "");
    await bind(profile, state, pod, nodeName, extenders, point).catch((err: unknown) => {
      throw new Error(`binding rejected: ${messageOf(err)}`, { cause: err });
    });
  } catch (err) {
    throw unreserve(profile, state, pod, nodeName, point, err);
  }
  const failures: unknown[] = [];
  point("PostBind", () => {
    for (const plugin of profile.at.postBind) {
      try {
        plugin.postBind?.(state, pod, nodeName);
      } catch (err) {
        failures.push(err);
      }
    }
  });
  return failures;
}

/** An extender with a bind verb takes precedence over the Bind plugins; of these, the first that does not return Skip binds. */
async function bind(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  nodeName: string,
  extenders: readonly Extender[],
  point: CycleTimer["point"],
): Promise<void> {
  const binder = extenders.find((extender) => extender.binds && extender.isInterested(pod.pod));
  if (binder !== undefined) return binder.bind(pod.pod, nodeName);
  await point("Bind", async () => {
    for (const plugin of profile.at.bind) {
      const status = await plugin.bind?.(state, pod, nodeName);
      if (status?.code !== "Skip") return refuseWith("Bind", plugin.name, status);
    }
    throw new Error("bind status: Skip, ");
  });
}

function refuseWith(point: string, plugin: string, status: Status | undefined): void {
  if (status !== undefined) throw new PluginError(point, { ...status, plugin });
}
