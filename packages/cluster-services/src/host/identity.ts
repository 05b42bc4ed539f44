import { hostname } from "node:os";

/**
 * The name of this process in its leases. It is the same after a restart, so that a process that was killed continues at once and not when its
 * leases have expired; there is one process on each node.
 */
export const identityOf = (nodeName: string): string => `${hostname()}_${nodeName}`;
