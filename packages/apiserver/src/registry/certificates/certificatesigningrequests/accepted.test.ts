/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { newCertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { testAccepted } from "../../../testing/accepted.ts";
import knownUsages from "./known-usages.json" with { type: "json" };

const resource = "certificatesigningrequests.certificates.k8s.io";
const { csrPem } = await newCertificateRequest({ commonName: "a" });
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const valid = { spec: { request: base64(csrPem), signerName: "a.b/c", usages: ["client auth"] } };
const is = (type: string, status = "True") => ({
  type,
  status,
  lastUpdateTime: "2022-01-01T00:00:00Z",
  lastTransitionTime: "2022-01-01T00:00:00Z",
});
const conditions = (...list: object[]) => ({ "status.conditions": list });
const legacy = "kubernetes.io/legacy-unknown";

testAccepted([
  {
    resource,
    valid,
    name: "usages, signers and times",
    taken: [
      { "spec.usages": knownUsages },
      ...["a.b/c", "a.b/c.d.e", `a.b/${"c".repeat(63)}`, "kubernetes.io/kube-apiserver-client"].map((signerName) => ({
        "spec.signerName": signerName,
      })),
      { "spec.expirationSeconds": 600 },
      { "metadata.name": "any name:of A" },
    ],
    refused: [
      [
        { "spec.expirationSeconds": 599 },
        "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds",
      ],
      [{ "spec.usages": ["client auth", "client auth"] }, 'spec.usages[1]: Duplicate value: "client auth"'],
      [{ "spec.usages": ["client auth", "odd"] }, 'spec.usages[1]: Unsupported value: "odd"'],
      [{ "spec.signerName": "a/b" }, 'spec.signerName: Invalid value: "a": should be a domain with at least two segments'],
      [{ "spec.signerName": "" }, "spec.signerName: Required value: signerName must be provided"],
      [{ "spec.usages": [] }, "spec.usages: Required value: usages must be provided"],
      [{ "metadata.name": "a/b" }, "metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    ],
  },
  {
    resource,
    valid,
    name: "nothing of spec and status, which are not looked at",
    before: {},
    taken: [{ "spec.usages": ["odd"], "spec.signerName": "x" }, { "status.certificate": "x" }, conditions(is("Approved"))],
  },
  {
    resource,
    valid,
    name: "of a stored request what would be refused of a new one",
    before: {
      "spec.signerName": legacy,
      "spec.usages": ["odd", "odd"],
      "status.certificate": base64("x"),
      ...conditions(is("Approved"), is("Denied"), is(""), is("")),
    },
    taken: [{}, { "metadata.labels": { a: "b" } }],
  },
  {
    resource,
    valid,
    name: "conditions of the signer",
    status: true,
    before: {},
    taken: [conditions(is("Failed")), conditions(is("Other"), is("More", "False"), is("Third", "Unknown"))],
    refused: [
      [conditions(is("Failed", "False")), 'status.conditions[0].status: Unsupported value: "False": supported values: "True"'],
      [conditions(is("Other", "")), "status.conditions[0].status: Required value"],
      [conditions(is("Denied")), 'status.conditions: Forbidden: updates may not add a condition of type "Denied"'],
      [conditions(is("Other"), is("Other")), 'status.conditions[1].type: Duplicate value: "Other"'],
    ],
  },
  {
    resource,
    valid,
    name: "conditions twice and of no type where there were some",
    status: true,
    before: conditions(is(""), is("Other"), is("Other")),
    taken: [conditions(is(""), is("More"), is("More")), conditions()],
  },
  {
    resource,
    valid,
    name: "that a request failed stays, and so do decisions",
    status: true,
    before: conditions(is("Approved"), is("Failed"), is("Other")),
    taken: [conditions(is("Approved"), is("Failed"))],
    refused: [
      [conditions(is("Approved")), 'status.conditions: Forbidden: updates may not remove a condition of type "Failed"'],
      [conditions(is("Failed")), 'status.conditions: Forbidden: updates may not remove a condition of type "Approved"'],
    ],
  },
  {
    resource,
    valid,
    name: "that a request is denied stays",
    status: true,
    before: conditions(is("Denied")),
    taken: [conditions(is("Denied"), is("Other"))],
    refused: [[conditions(), 'status.conditions: Forbidden: updates may not remove a condition of type "Denied"']],
  },
  {
    resource,
    valid,
    name: "a certificate that was wrong before stays, and does not change",
    status: true,
    before: { "status.certificate": base64("x") },
    taken: [{}, conditions(is("Other"))],
    refused: [
      [
        { "status.certificate": base64("y") },
        "status.certificate: Forbidden: updates may not modify existing certificate content",
      ],
      [{ "status.certificate": undefined }, "status.certificate: Forbidden: updates may not modify existing certificate content"],
    ],
  },
]);
