import { startJsonServer } from "./json-server.ts";

interface Lease {
  metadata: { name: string; resourceVersion?: string };
  spec: Record<string, unknown> & { holderIdentity: string };
}

interface LeaseApi {
  readonly host: string;
  /** Leases by name. */
  readonly leases: ReadonlyMap<string, Lease>;
  /** Events, in the order of their creation. */
  readonly events: readonly { readonly reason: string; readonly source: { readonly component: string } }[];
  /** Paths of the watches, in the order of their start. */
  readonly watched: readonly string[];
  /** Makes another program the holder of a lease; nobody: the lease is free. */
  hold(name: string, holderIdentity: string): void;
  /** False: the server responds to health checks with an error, but is ready. */
  isHealthy: boolean;
}

/** A minimal API server for leader elections: stores leases and events, all other collections are empty. */
export async function startLeaseApi(t: { after(fn: () => void): void }): Promise<LeaseApi> {
  const leases = new Map<string, Lease>();
  const events: LeaseApi["events"][number][] = [];
  const watched: string[] = [];
  let version = 0;
  const store = (lease: Lease): Lease => {
    const stored = { ...lease, metadata: { ...lease.metadata, resourceVersion: `${++version}` } };
    leases.set(lease.metadata.name, stored);
    return stored;
  };
  const answer: Parameters<typeof startJsonServer>[1] = ({ method, url, body, send }) => {
    if (url.pathname === "/healthz" && !api.isHealthy) return send(500, {});
    const lease = /\/leases(?:\/(.+))?$/.exec(url.pathname);
    if (lease !== null && body !== undefined) {
      // Optimistic concurrency: an update needs the current resourceVersion.
      const known = leases.get(body.metadata.name)?.metadata.resourceVersion;
      const isStale = method === "PUT" && body.metadata.resourceVersion !== known;
      return isStale ? send(409, { kind: "Status", status: "Failure", reason: "Conflict", code: 409 }) : send(200, store(body));
    }
    if (lease?.[1] !== undefined) {
      const missing = { kind: "Status", status: "Failure", reason: "NotFound", code: 404 };
      return send(leases.has(lease[1]) ? 200 : 404, leases.get(lease[1]) ?? missing);
    }
    if (method === "POST") {
      if (url.pathname.endsWith("/events")) events.push(body);
      return send(201, body);
    }
    send(200, { metadata: { resourceVersion: "1" }, items: [] });
  };
  const host = await startJsonServer(t, answer, { onWatch: ({ pathname }) => watched.push(pathname) });
  const renewTime = "2022-01-01T00:00:00.000000Z";
  const api: LeaseApi = {
    host,
    leases,
    events,
    watched,
    hold(name, holderIdentity) {
      const spec = { holderIdentity, leaseDurationSeconds: 3600, renewTime, acquireTime: renewTime, leaseTransitions: 0 };
      store({ metadata: { name }, spec });
    },
    isHealthy: true,
  };
  return api;
}
