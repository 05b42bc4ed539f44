import { readdirSync, readFileSync } from "node:fs";
import { waitFor } from "./wait-for.ts";

/** Sends SIGSTOP and waits until all threads have stopped; until then the process may still respond. */
export async function pauseProcess(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await waitFor(() => threadsOf(pid).every((stat) => /\) T /.test(stat)), { what: `process ${pid} to stand still` });
}

function threadsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((id) => readFileSync(`/proc/${pid}/task/${id}/stat`, "utf8"));
}
