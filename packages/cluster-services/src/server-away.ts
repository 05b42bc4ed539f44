import { isConnectionLost, isConnectionRefused } from "@coxswain/apimachinery/client/transport-errors";
import type { Result } from "@coxswain/apimachinery/controller/controller";
import type { Reconnection } from "@coxswain/apimachinery/informers/reconnection";

/** Whether the API server could not be reached, so that nothing is wrong with the request. */
export const isServerAway = (err: unknown): boolean => isConnectionRefused(err) || isConnectionLost(err);

type Reconcile = (key: string, signal: AbortSignal) => Promise<Result>;

/** Repeats a reconcile as soon as the API server can be reached again; a queue's backoff would grow with the outage. */
export const retryOnReturn =
  (reconnection: Reconnection, reconcile: Reconcile): Reconcile =>
  async (key, signal) => {
    try {
      return await reconcile(key, signal);
    } catch (err) {
      if (signal.aborted || !isServerAway(err)) throw err;
      await reconnection.wait(signal); // no other key could be worked on meanwhile
      return { requeueAfterMs: 0 };
    }
  };
