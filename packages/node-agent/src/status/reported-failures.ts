import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { AgentEvents } from "../events.ts";

/**
 * Wraps a periodic task: records a node event when it fails, after `tolerated` consecutive failures.
 * @param tolerated consecutive failures without event, e.g. while statistics are not available yet
 */
export function withReportedFailures(
  work: () => Promise<void>,
  { notify, reason, tolerated = 0 }: { notify: Pick<AgentEvents, "node">; reason: string; tolerated?: number },
): () => Promise<void> {
  let failures = 0;
  return async () => {
    try {
      await work();
      failures = 0;
    } catch (err) {
      failures++;
      if (failures > tolerated) notify.node("Warning", reason, messageOf(err));
      throw err;
    }
  };
}
