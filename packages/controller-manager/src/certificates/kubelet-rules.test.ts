import assert from "node:assert/strict";
import { test } from "node:test";
import type { CertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { kubeletClientFault, kubeletServingFault } from "./kubelet-rules.ts";

const request = (more: Partial<CertificateRequest> = {}): CertificateRequest => ({
  commonName: "system:node:a",
  organizations: ["system:nodes"],
  ...{ dnsNames: [], emails: [], ips: [], uris: [] },
  ...more,
});
const clientUsages = ["client auth", "digital signature", "key encipherment"];
const servingUsages = ["digital signature", "key encipherment", "server auth"];
const clientUsagesFault = `usages did not match [${clientUsages.join(" ")}]`;
const servingUsagesFault = `usages did not match [${servingUsages.join(" ")}]`;
const organizationFault = "subject organization is not system:nodes";
const nameFault = "subject common name does not begin with system:node:";

for (const { name, more = {}, usages = clientUsages, want } of [
  { name: "of a node", want: undefined },
  { name: "with its usages in another order, one twice", usages: [...clientUsages.toReversed(), "client auth"], want: undefined },
  { name: "without an organization", more: { organizations: [] }, want: organizationFault },
  { name: "of another organization", more: { organizations: ["system:masters"] }, want: organizationFault },
  { name: "of a second organization", more: { organizations: ["system:nodes", "system:masters"] }, want: organizationFault },
  { name: "with a DNS name", more: { dnsNames: ["a"] }, want: "DNS subjectAltNames are not allowed" },
  { name: "with an email", more: { emails: ["a@b"] }, want: "Email subjectAltNames are not allowed" },
  { name: "with an IP", more: { ips: ["10.0.0.1"] }, want: "IP subjectAltNames are not allowed" },
  { name: "with a URI", more: { uris: ["a:b"] }, want: "URI subjectAltNames are not allowed" },
  { name: "of a user", more: { commonName: "jane" }, want: nameFault },
  { name: "of a name that only contains that of a node", more: { commonName: "x:system:node:a" }, want: nameFault },
  { name: "for one usage less", usages: clientUsages.slice(1), want: clientUsagesFault },
  { name: "for one usage more", usages: [...clientUsages, "server auth"], want: clientUsagesFault },
  { name: "for a server", usages: servingUsages, want: clientUsagesFault },
] as { name: string; more?: object; usages?: string[]; want: string | undefined }[])
  test(`a client certificate ${name}: ${want ?? "valid"}`, () => assert.equal(kubeletClientFault(request(more), usages), want));

const named = { dnsNames: ["a"] };
for (const { name, more = named, usages = servingUsages, want } of [
  { name: "for a DNS name", want: undefined },
  { name: "for an IP", more: { ips: ["10.0.0.1"] }, want: undefined },
  { name: "for both", more: { ...named, ips: ["10.0.0.1"] }, want: undefined },
  { name: "for neither", more: {}, want: "DNS or IP subjectAltName is required" },
  { name: "of another organization", more: { ...named, organizations: ["x"] }, want: organizationFault },
  { name: "with an email", more: { ...named, emails: ["a@b"] }, want: "Email subjectAltNames are not allowed" },
  { name: "with a URI", more: { ...named, uris: ["a:b"] }, want: "URI subjectAltNames are not allowed" },
  { name: "for a client", usages: clientUsages, want: servingUsagesFault },
  { name: "of a user", more: { ...named, commonName: "jane" }, want: nameFault },
] as { name: string; more?: object; usages?: string[]; want: string | undefined }[])
  test(`a serving certificate ${name}: ${want ?? "valid"}`, () => assert.equal(kubeletServingFault(request(more), usages), want));
