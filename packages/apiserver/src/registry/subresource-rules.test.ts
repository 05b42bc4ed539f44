import type { FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { defaultsOf } from "../testing/kind-rules.ts";
import { testRefusals } from "../testing/refusals.ts";
import { validateJob } from "./batch/jobs/validation.ts";
import { certificateApprovalStrategy } from "./certificates/certificatesigningrequests/strategy.ts";
import { namespaceFinalizeStrategy } from "./core/namespaces/finalize.ts";
import { podValidationOptions } from "./core/pods/validation/options.ts";

/** Validation of subresource strategies other than status, and rules that only internal callers can violate. */
const csr = { metadata: { name: "c" }, spec: { request: "", usages: ["any"], signerName: "a.b/c" } };
const pod = podValidationOptions(() => true);

testRefusals<() => FieldError[]>(
  (validate) => validate(),
  [
    {
      name: "an approval of a request that is none",
      input: () => certificateApprovalStrategy.validateUpdate?.(csr, csr, {} as never) ?? [],
      want: ["spec.request: Invalid value: []byte(nil): PEM block type must be CERTIFICATE REQUEST"],
    },
    {
      name: "a namespace with an unknown finalizer",
      input: () => {
        const namespace = { metadata: { name: "n" }, spec: { finalizers: ["kubernetes", "mine"] } };
        return namespaceFinalizeStrategy.validateUpdate?.(namespace, namespace, {} as never) ?? [];
      },
      want: ['spec.finalizers[1]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified'],
    },
    {
      name: "a job with a selector of the server's and no uid to select by",
      input: () => {
        const labels = { "controller-uid": "", "job-name": "j" };
        const template = {
          metadata: { labels },
          spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] },
        };
        const job = { metadata: { name: "j" }, spec: { selector: { matchLabels: { "controller-uid": "" } }, template } };
        return atOnce(validateJob(defaultsOf("jobs.batch", job) as never, { pod, trackingAnnotation: true }));
      },
      want: ["metadata.uid: Required value"],
    },
  ],
);
