import type { LifecycleHandler } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { AnyContainer, NodePod } from "../pod/pod.ts";

/** A lifecycle hook and the container to run it for. */
interface HookCall {
  pod: NodePod;
  container: AnyContainer;
  containerId: string;
  podIp: string;
  handler: LifecycleHandler;
}

/** Runs a postStart or preStop handler. @throws Error with `output` when the command or request fails */
export type RunHook = (call: HookCall) => Promise<void>;
