import { readdirSync, readFileSync } from "node:fs";
import { waitFor } from "./wait-for.ts";

/** Resolves when all of it stands still: threads stop one after the other, and what is asked meanwhile may be answered. */
export async function pauseProcess(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await waitFor(() => threadsOf(pid).every((stat) => /\) T /.test(stat)), { what: `process ${pid} to stand still` });
}

function threadsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((id) => readFileSync(`/proc/${pid}/task/${id}/stat`, "utf8"));
}
