import type { LifecycleHandler } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { AnyContainer, NodePod } from "../pods/pod.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { get, httpTarget } from "./http.ts";

export interface HookCall {
  pod: NodePod;
  container: AnyContainer;
  containerId: string;
  podIp: string;
  handler: LifecycleHandler;
}

/** Runs a postStart or preStop handler. @throws Error with `output` when the command or the request failed. */
export type RunHook = (call: HookCall) => Promise<void>;

const hookTimeoutMs = 30_000;
/** It becomes a part of the Pod's status, which would otherwise be too large for the API server. */
const maxOutputBytes = 10 * 1024;

/** Source: pkg/kubelet/lifecycle/handlers.go */
export function newHookRunner(runtime: ContainerRuntime): RunHook {
  return async ({ container, containerId, podIp, handler }) => {
    if (handler.exec !== undefined) {
      const command = handler.exec.command ?? [];
      const { stdout, stderr, exitCode } = await runtime.execSync(containerId, command, 0);
      if (exitCode === 0) return;
      const shown = (bytes: Buffer): string => bytes.subarray(0, maxOutputBytes).toString("utf8");
      const output = shown(Buffer.concat([stdout, stderr]));
      throw Object.assign(new Error(`command '${command.join(" ")}' exited with ${exitCode}: ${shown(stderr)}`), { output });
    }
    if (handler.httpGet !== undefined) {
      // Whatever the action says: hooks of this version know neither TLS nor headers.
      const { url } = httpTarget({ ...handler.httpGet, scheme: "HTTP" }, container, podIp);
      await get(url, new Map(), AbortSignal.timeout(hookTimeoutMs));
      return; // upstream looks at no status: an answer is enough
    }
    throw new Error("invalid handler: <nil>");
  };
}
