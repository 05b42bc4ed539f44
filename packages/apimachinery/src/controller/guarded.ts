import type { Logger } from "../logging/logger.ts";

/**
 * For callbacks of timers and emitters that look at objects: nobody catches what they throw, and the process would end.
 * @param failure what to say of a throw, which is logged; the next call comes all the same
 */
export function guarded(log: Pick<Logger, "error">, failure: string, call: () => void): () => void {
  return () => {
    try {
      call();
    } catch (err) {
      log.error(failure, err);
    }
  };
}
