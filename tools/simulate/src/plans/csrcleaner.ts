import { certificateSigningRequests } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Stored } from "../invariants/view.ts";
import { asPerson, type CertificateRequests, newCertificateRequests } from "./certificate-requests.ts";
import { allFaults, lasting, type Plan, type User } from "./plan.ts";

const hourMs = 3_600_000;
/** Longer than the clock skew of a manager. */
const toleranceMs = 60_000;

let requests: Promise<CertificateRequests> | undefined;

async function denied(user: User, name: string, agoMs: number): Promise<void> {
  requests ??= newCertificateRequests();
  const { person } = await requests;
  await user.create(certificateSigningRequests, { metadata: { name }, spec: { ...asPerson, request: person } });
  const lastUpdateTime = new Date(Math.floor((Date.now() - agoMs) / 1000) * 1000).toISOString().replace(".000", "");
  await user.change(
    certificateSigningRequests,
    { namespace: "", name },
    (request) => {
      request.status = { conditions: [{ type: "Denied", status: "True", reason: "Unknown", lastUpdateTime }] };
    },
    "approval",
  );
}

const decidedAgoMs = ({ status }: Stored): number => Date.now() - Date.parse(status?.conditions?.[0]?.lastUpdateTime ?? "");

/** Requests that were decided more than an hour ago are deleted, the others are kept. */
export const csrCleanerPlan: Plan = {
  name: "csrcleaner",
  isLong: true,
  controllers: ["csrcleaner"],
  apis: ["certificates.k8s.io/v1"],
  faults: allFaults,
  rules: lasting,
  // It looks when it starts, then once an hour.
  restMs: hourMs + 300_000,
  async managerFlags() {
    requests ??= newCertificateRequests();
    await requests;
    return [];
  },
  async before(user) {
    for (const name of ["old", "older"]) await denied(user, name, hourMs + toleranceMs + user.random() * hourMs);
    await denied(user, "fresh", 0);
  },
  act: (user) => user.pause(1_000 + user.random() * 5_000),
  deleted: (object) =>
    object.kind === "CertificateSigningRequest" && !(decidedAgoMs(object) > hourMs - toleranceMs)
      ? `${object.metadata.name} is deleted ${decidedAgoMs(object) / 1000} s after it was denied`
      : undefined,
  missing(view) {
    const left = view.all("certificatesigningrequests").find(({ metadata }) => metadata.name?.startsWith("old"));
    return left === undefined ? undefined : `${left.metadata.name} is still there`;
  },
};
