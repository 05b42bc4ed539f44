import { type ContainerRuntime, RuntimeError } from "../runtime/runtime.ts";
import type { ProbeOutcome } from "./http.ts";

const maxOutputBytes = 10 * 1024;

/** Succeeds with exit code 0; a timeout is a failure. Source: pkg/probe/exec/exec.go */
export async function probeExec(
  runtime: ContainerRuntime,
  containerId: string,
  command: readonly string[],
  timeoutSeconds: number,
): Promise<ProbeOutcome> {
  try {
    const { stdout, stderr, exitCode } = await runtime.execSync(containerId, command, timeoutSeconds);
    const output = Buffer.concat([stdout, stderr]).subarray(0, maxOutputBytes).toString("utf8");
    return { result: exitCode === 0 ? "success" : "failure", output };
  } catch (err) {
    if (err instanceof RuntimeError && (err.code === "DeadlineExceeded" || /timeout|timed out/.test(err.details))) {
      return { result: "failure", output: `command ${JSON.stringify(command.join(" "))} timed out` };
    }
    throw err;
  }
}
