import { once } from "node:events";
import type { CommandStreams } from "./remote-command.ts";
import type { Exec, ExecRequest } from "./rules.ts";

/** Runs a command with the rule's exec function, and sends its exit status to the client. */
export async function runExec(
  exec: Exec,
  requested: Pick<ExecRequest, "pod" | "container" | "command" | "tty">,
  streams: CommandStreams,
  signal: AbortSignal,
): Promise<void> {
  const write = (to: "stdout" | "stderr") => (chunk: string | Uint8Array) =>
    // With a terminal there is a single output stream.
    streams.write(requested.tty ? "stdout" : to, typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  const [stdout, stderr] = [write("stdout"), write("stderr")];
  const request: ExecRequest = {
    ...requested,
    stdin: streams.stdin,
    stdout,
    stderr,
    onResize: (listener) => streams.terminal.listen(listener),
    signal,
  };
  try {
    const result = (await Promise.race([exec(request), gone(signal)])) ?? 0;
    const {
      stdout: out,
      stderr: err,
      exitCode = 0,
    } = typeof result === "string" ? { stdout: result } : typeof result === "number" ? { exitCode: result } : result;
    if (out) await stdout(out);
    if (err) await stderr(err);
    const message = exitCode === 0 ? "" : `command terminated with non-zero exit code: exit status ${exitCode}`;
    await streams.finish(exitStatus(exitCode, message), message);
  } catch (err) {
    const message = `error executing command: ${(err as Error).message ?? err}`;
    await streams.finish({ metadata: {}, status: "Failure", reason: "InternalError", message, code: 500 }, message);
  }
}

/** Rejects when the client disconnects. */
async function gone(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
}

/** Source: pkg/kubelet/cri/streaming/remotecommand/exec.go (v4 of the protocol) */
function exitStatus(exitCode: number, message: string): object {
  if (exitCode === 0) return { metadata: {}, status: "Success" };
  const causes = [{ reason: "ExitCode", message: String(exitCode) }];
  return { metadata: {}, status: "Failure", reason: "NonZeroExitCode", message, details: { causes } };
}
