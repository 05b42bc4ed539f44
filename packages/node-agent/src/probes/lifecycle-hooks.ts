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

/** Source: pkg/kubelet/lifecycle/handlers.go */
export function newHookRunner(runtime: ContainerRuntime): RunHook {
  return async ({ container, containerId, podIp, handler }) => {
    if (handler.exec !== undefined) {
      const command = handler.exec.command ?? [];
      const { stdout, stderr, exitCode } = await runtime.execSync(containerId, command, 0);
      if (exitCode === 0) return;
      const output = Buffer.concat([stdout, stderr]).toString("utf8");
      throw Object.assign(new Error(`command '${command.join(" ")}' exited with ${exitCode}: ${stderr.toString("utf8")}`), {
        output,
      });
    }
    if (handler.httpGet !== undefined) {
      const { url, headers } = httpTarget(handler.httpGet, container, podIp);
      url.protocol = "http:"; // whatever the scheme says: hooks of this version know no TLS
      await get(url, headers, AbortSignal.timeout(hookTimeoutMs));
      return; // upstream looks at no status: an answer is enough
    }
    throw new Error("invalid handler: <nil>");
  };
}
