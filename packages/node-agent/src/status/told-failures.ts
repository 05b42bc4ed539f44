import type { AgentEvents } from "./events.ts";

/**
 * Work whose failures the node tells of, when it has failed more often than it may without a success between.
 * @param tolerated failures that are nobody's business: what is measured may not be known yet
 */
export function withToldFailures(
  work: () => Promise<void>,
  { tell, reason, tolerated = 0 }: { tell: Pick<AgentEvents, "node">; reason: string; tolerated?: number },
): () => Promise<void> {
  let failures = 0;
  return async () => {
    try {
      await work();
      failures = 0;
    } catch (err) {
      failures++;
      if (failures > tolerated) tell.node("Warning", reason, (err as Error).message);
      throw err;
    }
  };
}
