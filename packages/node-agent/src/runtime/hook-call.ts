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

/** A command that failed. */
export class HookError extends Error {
  /** What it has written, shortened. */
  readonly output: string;

  constructor(message: string, output: string) {
    super(message);
    this.output = output;
  }
}

/** Runs a postStart or preStop handler. @throws HookError when the command fails, another Error when the request does */
export type RunHook = (call: HookCall) => Promise<void>;
