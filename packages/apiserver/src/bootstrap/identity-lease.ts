/**
 * With the gate APIServerIdentity each API server maintains a Lease in kube-system under its own name, and deletes expired
 * leases of other servers.
 * Source: k8s.io/apiserver pkg/reconcilers, pkg/controlplane/instance.go, pkg/controlplane/controller/apiserverleasegc
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { formatMicroTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import { leases } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { ensure } from "./ensure.ts";

export interface IdentityLeaseOptions {
  readonly client: Client;
  /** `kube-apiserver-<uuid>`; new for each process. */
  readonly identity: string;
  readonly durationSeconds: number;
  readonly renewIntervalSeconds: number;
  readonly clock: Clock;
  readonly log: Logger;
}

const namespace = "kube-system";
const labels = { "k8s.io/component": "kube-apiserver" };
const collectIntervalMs = 3_600_000;

/** Writes the lease once, at startup; `keepIdentityLease` renews it. */
export async function renewIdentityLease(options: IdentityLeaseOptions, signal?: AbortSignal): Promise<void> {
  const { client, identity, durationSeconds, clock } = options;
  const renewTime = formatMicroTime(clock.now());
  const spec = { holderIdentity: identity, leaseDurationSeconds: durationSeconds, renewTime };
  await ensure<Lease>(
    client,
    leases,
    { metadata: { namespace, name: identity, labels }, spec },
    (existing) => ({ ...existing, spec: { ...existing.spec, ...spec } }),
    signal,
  );
}

/** Renews the lease and deletes expired ones until `signal` is aborted. */
export function keepIdentityLease(options: IdentityLeaseOptions, signal: AbortSignal): void {
  const { clock, log } = options;
  const quietly = (work: () => Promise<void>, failed: string) => (): void => {
    work().catch((err: unknown) => {
      if (!signal.aborted) log.warn(failed, { err: String(err) });
    });
  };
  const timers = [
    clock.every(
      options.renewIntervalSeconds * 1000,
      quietly(() => renewIdentityLease(options, signal), "cannot renew the identity lease"),
    ),
    clock.every(
      collectIntervalMs,
      quietly(() => collectIdentityLeases(options, signal), "cannot take expired identity leases away"),
    ),
  ];
  signal.addEventListener("abort", () => {
    for (const timer of timers) timer.cancel();
  });
}

/** Deletes the leases of servers that no longer renew them. */
export async function collectIdentityLeases({ client, clock }: IdentityLeaseOptions, signal?: AbortSignal): Promise<void> {
  const labelSelector = "k8s.io/component=kube-apiserver";
  const { items } = await client.list<Lease>(leases, { namespace }, { labelSelector, signal });
  for (const { metadata } of items.filter((lease) => isExpired(lease, clock.now()))) {
    try {
      await client.delete(leases, { namespace, name: metadata.name! }, { signal });
    } catch (err) {
      if (!isNotFound(err)) throw err;
    }
  }
}

/** A lease without renewTime or duration counts as expired. */
function isExpired({ spec }: Lease, nowMs: number): boolean {
  const { renewTime, leaseDurationSeconds } = spec ?? {};
  if (!renewTime || leaseDurationSeconds == null) return true;
  return Date.parse(renewTime) + leaseDurationSeconds * 1000 < nowMs;
}
