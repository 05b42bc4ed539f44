import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

/**
 * An async function as an event listener or request handler of a test's server. When it rejects, the streams among its arguments are
 * destroyed, so that the peer waits for no answer, and the error is thrown again where the test runner sees it.
 */
export function asyncListener<Args extends unknown[]>(handle: (...args: Args) => Promise<unknown>): (...args: Args) => void {
  return (...args) => {
    handle(...args).catch((err: unknown) => {
      for (const each of args) (each as { destroy?(): void } | undefined)?.destroy?.();
      setImmediate(() => {
        throw err;
      });
    });
  };
}

export const asyncRequestListener: (
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<unknown>,
) => RequestListener = asyncListener;
