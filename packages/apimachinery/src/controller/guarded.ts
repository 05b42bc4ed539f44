import type { Logger } from "../process/logging/logger.ts";

/**
 * Wraps a callback of a timer or emitter, whose exception would end the process.
 * @param failure log message for an exception
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
