import type { TLSSocket } from "node:tls";
import type { Clock, Timer } from "../process/clock/clock.ts";
import { ClientConnection } from "../transport/http2/client/connection.ts";
import type { PoolEvents } from "./stream-pool.ts";
import { ConnectionLost, NotProcessed } from "./transport-errors.ts";

interface SessionOptions {
  readonly clock: Clock;
}

/** Large windows, so that one slow watch does not block others on its connection. Source: golang.org/x/net/http2 transport.go */
const windows = { streamWindowBytes: 4 << 20, connectionWindowBytes: 1 << 30 };
const settingsTimeoutMs = 30_000;
const pingIntervalMs = 30_000;
/** Less than the interval, so that only one ping is unanswered at a time. */
const pingTimeoutMs = 15_000;

/**
 * Opens an HTTP/2 connection to an API server. Resolves after the server's SETTINGS, which contain its stream limit. It is pinged
 * periodically, and closed when the server does not answer, so that watches end instead of hanging.
 * @param onClosed called when the connection is closed
 * @throws the socket's error; NotProcessed when the server closes the connection before
 */
export function openSession(
  socket: TLSSocket,
  options: SessionOptions,
  events: PoolEvents,
  onClosed: () => void,
): Promise<ClientConnection> {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    const connection = new ClientConnection(socket, windows, {
      ready() {
        clearTimeout(deadline);
        resolve(connection);
      },
      changed: events.changed,
      leaving: events.draining,
      closed() {
        clearTimeout(deadline);
        pings.cancel();
        onClosed();
        events.ended();
        reject(new NotProcessed("the connection was closed before it was used"));
      },
    });
    const noSettings = new ConnectionLost("the server sends no settings");
    const deadline = setTimeout(() => {
      reject(noSettings);
      connection.destroy(noSettings);
    }, settingsTimeoutMs);
    const pings = pingPeriodically(connection, options);
  });
}

function pingPeriodically(connection: ClientConnection, { clock }: SessionOptions): Timer {
  const silent = (): void => connection.destroy(new ConnectionLost("the server does not answer pings"));
  let waiting: Timer | undefined;
  const periodic = clock.every(pingIntervalMs, () => {
    waiting = clock.after(pingTimeoutMs, silent);
    connection.ping(() => {
      waiting?.cancel();
      waiting = undefined;
    });
  });
  return {
    cancel() {
      periodic.cancel();
      waiting?.cancel();
    },
  };
}
