/** Which API server new connections go to. Pure. */

/**
 * `unknown`: not probed yet. `leaving`: it terminates, and finishes its requests. `unready`: it reports that it cannot work, e.g.
 * without its etcd. `dead`: it does not answer, or has been unready for some time.
 */
export type ServerState = "ready" | "unknown" | "leaving" | "unready" | "dead";

export interface KnownServer {
  /** `192.0.2.11:6443` */
  readonly address: string;
  readonly state: ServerState;
}

/** A server that fails may be back before it is noticed, so it is tried last. */
const order: readonly ServerState[] = ["ready", "unknown", "leaving", "unready", "dead"];

/**
 * All servers, in the order in which they are tried: by state; among equals first `current`, so that connections stay together, then
 * as they were given.
 */
export function inOrder(servers: readonly KnownServer[], current: string | undefined): string[] {
  const rank = ({ address, state }: KnownServer): number => 2 * order.indexOf(state) - (address === current ? 1 : 0);
  return servers.toSorted((a, b) => rank(a) - rank(b)).map(({ address }) => address);
}

/**
 * Whether connections to a server are closed: when it is dead, and another one is ready. When no other server is ready, closing
 * them would not help.
 */
export const isToLeave = (state: ServerState, listed: readonly KnownServer[]): boolean =>
  state === "dead" && listed.some((server) => server.state === "ready");
