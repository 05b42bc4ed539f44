import { hostname } from "node:os";

/**
 * The holder identity of this process in its leases. It is the same after a restart, so that a process that was killed takes up
 * its leases at once instead of after their expiry. A node runs one process only.
 */
export const identityOf = (nodeName: string): string => `${hostname()}_${nodeName}`;
