import { X509Certificate } from "node:crypto";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { certificateSigningRequests } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { conditionOf } from "../../certificates/requests.ts";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { definePeriodic } from "../../define-controller.ts";

/**
 * csrcleaner: deletes obsolete CertificateSigningRequests every hour.
 * Reads and deletes CertificateSigningRequests.
 * Source: pkg/controller/certificates/cleaner/cleaner.go
 */
export function newCsrCleaner(base: ControllerContext): Runnable {
  const ctx: CleanerContext = {
    ...base,
    requests: base.informers.for<CertificateSigningRequest>(certificateSigningRequests),
  };
  return definePeriodic(ctx, {
    name: "csrcleaner",
    periodMs: hourMs,
    synced: [ctx.requests],
    work: clean,
  });
}

interface CleanerContext extends ControllerContext {
  readonly requests: SharedInformer<CertificateSigningRequest>;
}

async function clean(ctx: CleanerContext, signal: AbortSignal): Promise<void> {
  for (const csr of ctx.requests.lister.list()) {
    const why = reasonToDelete(csr, ctx.clock.now());
    if (why === undefined) continue;
    const { name = "" } = csr.metadata;
    ctx.log.info("Cleaning CSR", { csr: name, why });
    await ctx.client.delete(certificateSigningRequests, { name }, { signal }).catch((err) => {
      if (!isNotFound(err)) ctx.log.error("unable to delete CSR", err, { csr: name });
    });
  }
}

const hourMs = 3_600_000;

/**
 * Pure: the reason to delete a request; undefined to keep it.
 * @param now ms since the epoch
 */
export function reasonToDelete(csr: CertificateSigningRequest, now: number): string | undefined {
  const isOlder = (time: string | null | undefined, ageMs: number): boolean => {
    const at = time ? parseTime(time) : undefined;
    return at !== undefined && now - at > ageMs;
  };
  const decidedLongAgo = (type: string): boolean => isOlder(conditionOf(csr, type)?.lastUpdateTime, hourMs);
  const certificate = csr.status?.certificate;
  if (certificate && decidedLongAgo("Approved")) return "it was issued more than an hour ago";
  if (decidedLongAgo("Denied")) return "it was denied more than an hour ago";
  if (decidedLongAgo("Failed")) return "it failed more than an hour ago";
  const isPending = (csr.status?.conditions ?? []).length === 0;
  if (isPending && isOlder(csr.metadata.creationTimestamp, 24 * hourMs)) return "it was not handled within a day";
  if (certificate && conditionOf(csr, "Approved") !== undefined && hasExpired(certificate, now))
    return "its certificate has expired";
  return undefined;
}

function hasExpired(certificate: string, now: number): boolean {
  try {
    return Date.parse(new X509Certificate(Buffer.from(certificate, "base64")).validTo) < now;
  } catch {
    return false; // malformed certificates do not expire
  }
}
