import { request } from "node:https";
import { connect, createServer, type Socket } from "node:net";

export interface TcpBalancer {
  readonly port: number;
  /** Number of connections that no server accepted. */
  readonly refused: number;
  close(): void;
}

const checkMs = 200;

/**
 * A small TCP load balancer for several API servers: round-robin over the servers in rotation, with fallback to the next one
 * when a connection is refused. With `ca`, a server is in rotation while its /readyz returns 200; without it, all servers always
 * are.
 */
export async function startTcpBalancer(
  t: { after(fn: () => void): void },
  backends: readonly number[],
  ca?: string,
): Promise<TcpBalancer> {
  const inRotation = new Set(backends);
  const open = new Set<Socket>();
  let turn = 0;
  let refused = 0;
  const check = (port: number): void => {
    const pending = request({ host: "127.0.0.1", port, path: "/readyz", ca, agent: false, timeout: 2_000 }, (response) => {
      response.resume();
      if (response.statusCode === 200) inRotation.add(port);
      else inRotation.delete(port);
    });
    pending.on("timeout", () => pending.destroy());
    pending.on("error", () => inRotation.delete(port));
    pending.end();
  };
  const timer = ca === undefined ? undefined : setInterval(() => backends.forEach(check), checkMs);

  const lead = (from: Socket, candidates: readonly number[]): void => {
    const [port, ...rest] = candidates;
    if (port === undefined) {
      refused++;
      from.destroy();
      return;
    }
    const to = connect(port, "127.0.0.1");
    open.add(to);
    to.once("close", () => open.delete(to));
    const next = (): void => lead(from, rest);
    to.once("error", next);
    to.once("connect", () => {
      to.off("error", next);
      to.on("error", () => {});
      to.once("close", () => from.destroySoon());
      from.once("close", () => to.destroySoon());
      if (from.destroyed) return void to.destroy();
      to.setNoDelay(true);
      from.pipe(to);
      to.pipe(from);
    });
  };
  const server = createServer({ noDelay: true }, (from) => {
    open.add(from);
    from.once("close", () => open.delete(from));
    from.on("error", () => {});
    const at = turn++ % backends.length;
    const ordered = [...backends.slice(at), ...backends.slice(0, at)];
    lead(from, [...ordered.filter((port) => inRotation.has(port)), ...ordered.filter((port) => !inRotation.has(port))]);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = (): void => {
    clearInterval(timer);
    server.close();
    for (const socket of open) socket.destroy();
  };
  t.after(close);
  return {
    port: (server.address() as { port: number }).port,
    get refused() {
      return refused;
    },
    close,
  };
}
