import { HookError, type RunHook } from "../runtime/hook-call.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { get, httpTarget } from "./http.ts";

/** The output becomes part of an event and of the Pod's status, which are limited in size. */
const maxOutputBytes = 10 * 1024;

/**
 * Runs exec hooks through the runtime, HTTP hooks from the node.
 * @param httpTimeoutMs overridden in tests
 * Source: pkg/kubelet/lifecycle/handlers.go
 */
export function newHookRunner(runtime: ContainerRuntime, httpTimeoutMs = 30_000): RunHook {
  return async ({ container, containerId, podIp, handler }) => {
    if (handler.exec !== undefined) {
      const command = handler.exec.command ?? [];
      const { stdout, stderr, exitCode } = await runtime.execSync(containerId, command, 0);
      if (exitCode === 0) return;
      const shown = (bytes: Buffer): string => bytes.subarray(0, maxOutputBytes).toString("utf8");
      const output = shown(Buffer.concat([stdout, stderr]));
      throw new HookError(`command '${command.join(" ")}' exited with ${exitCode}: ${shown(stderr)}`, output);
    }
    if (handler.httpGet !== undefined) {
      // In this release hooks support neither TLS nor headers, whatever the action specifies.
      const { url } = httpTarget({ ...handler.httpGet, scheme: "HTTP" }, container, podIp);
      await get(url, new Map(), AbortSignal.timeout(httpTimeoutMs));
      return; // as upstream, any response counts as success
    }
    throw new Error("invalid handler: <nil>");
  };
}
