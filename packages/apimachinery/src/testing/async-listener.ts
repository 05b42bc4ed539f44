import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

/**
 * Adapts an async function to an event listener or request handler. When it rejects, the streams among its arguments are
 * destroyed, so that the peer does not wait for a response, and the error is rethrown as an uncaught exception, which
 * fails the test.
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
