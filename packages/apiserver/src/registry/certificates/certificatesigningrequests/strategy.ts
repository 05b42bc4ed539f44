import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { pathSegmentFaults } from "@coxswain/apimachinery/objects/validation/dns";
import type { Strategy } from "../../generic/strategy.ts";
import { keep, statusStrategyOf, strategyOf } from "../../strategies.ts";
import {
  validateApprovalUpdate,
  validateCertificateSigningRequest,
  validateCertificateSigningRequestUpdate,
  validateStatusUpdate,
} from "./validation.ts";

type Csr = CertificateSigningRequest;

/**
 * The requester's identity is set by the server; the spec is immutable.
 * Source: pkg/registry/certificates/certificates/strategy.go
 */
export const certificateSigningRequestStrategy: Strategy<Csr> = {
  ...strategyOf<Csr>({ namespaced: false, status: true }),
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  validateName: pathSegmentFaults,
  prepareForCreate(next, ctx) {
    next.status = {};
    const { spec } = next;
    if (!spec) return;
    delete spec.username;
    delete spec.uid;
    delete spec.groups;
    delete spec.extra;
    if (ctx.user) {
      spec.username = ctx.user.name;
      if (ctx.user.uid) spec.uid = ctx.user.uid;
      if (ctx.user.groups.length > 0) spec.groups = [...ctx.user.groups];
      const extra = Object.entries(ctx.user.extra ?? {}).map(([key, values]): [string, string[]] => [key, [...values]]);
      if (extra.length > 0) spec.extra = Object.fromEntries(extra);
    }
  },
  prepareForUpdate(next, current) {
    keep(next, current, "spec");
    keep(next, current, "status");
  },
  validate: (next) => validateCertificateSigningRequest(next),
  validateUpdate: (next, current) => validateCertificateSigningRequestUpdate(next, current),
};

/** `/status`, for signers: the certificate, and conditions other than Approved and Denied. */
export const certificateSigningRequestStatusStrategy: Strategy<Csr> = {
  ...statusStrategyOf<Csr>({ namespaced: false }),
  prepareForUpdate(next, current, ctx) {
    keep(next, current, "spec");
    for (const type of ["Approved", "Denied"]) keepConditions(next, current, type);
    stampConditions(next, current, ctx.now());
  },
  validateUpdate: (next, current) => validateStatusUpdate(next, current),
};

/** `/approval`, for approvers: only the conditions. */
export const certificateApprovalStrategy: Strategy<Csr> = {
  ...statusStrategyOf<Csr>({ namespaced: false }),
  prepareForUpdate(next, current, ctx) {
    keep(next, current, "spec");
    const conditions = next.status?.conditions;
    next.status = { ...current.status };
    if (conditions?.length) next.status.conditions = conditions;
    else delete next.status.conditions;
    stampConditions(next, current, ctx.now());
  },
  validateUpdate: (next, current) => validateApprovalUpdate(next, current),
};

/** Restores the stored conditions of a type when their number is unchanged; validation rejects added or removed ones. */
function keepConditions(next: Csr, current: Csr, type: string): void {
  const conditions = next.status?.conditions ?? [];
  const old = (current.status?.conditions ?? []).filter((condition) => condition.type === type);
  const places = [...conditions.keys()].filter((i) => conditions[i]?.type === type);
  if (places.length !== old.length) return;
  for (const [i, condition] of old.entries()) conditions[places[i]!] = { ...condition };
}

/** Sets missing timestamps. */
function stampConditions(next: Csr, current: Csr, now: number): void {
  const time = formatTime(now);
  for (const condition of next.status?.conditions ?? []) {
    const same = (current.status?.conditions ?? []).find(
      ({ type, status, lastTransitionTime }) => type === condition.type && status === condition.status && lastTransitionTime,
    );
    condition.lastUpdateTime ||= time;
    condition.lastTransitionTime ||= same?.lastTransitionTime ?? time;
  }
}
