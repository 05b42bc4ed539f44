import assert from "node:assert/strict";
import { test } from "node:test";
import { faultsOf, testKindRules } from "../../../testing/kind-rules.ts";
import { smallestObjects } from "../../../testing/smallest-objects.ts";

testKindRules(
  "apiservices.apiregistration.k8s.io",
  {
    metadata: { name: "v1.a.b" },
    spec: {
      group: "a.b",
      version: "v1",
      groupPriorityMinimum: 1,
      versionPriority: 1,
      insecureSkipTLSVerify: true,
      service: { name: "s", namespace: "n" },
    },
  },
  [
    { name: "a service", change: {}, want: [] },
    {
      name: "a name",
      change: { "metadata.name": "x" },
      want: ['metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "v1.a.b"'],
    },
    {
      name: "priorities and a bundle that is not looked at",
      change: { "spec.groupPriorityMinimum": 0, "spec.versionPriority": 1001, "spec.caBundle": "eA==" },
      want: [
        "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
        "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
        "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
      ],
    },
    {
      name: "a service of nothing",
      change: { "spec.service": { name: "", namespace: "" } },
      want: ["spec.service.namespace: Required value", "spec.service.name: Required value"],
    },
    {
      name: "a version here with a bundle",
      change: { "spec.service": undefined, "spec.caBundle": "eA==" },
      want: [
        'spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle',
        "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
      ],
    },
    {
      name: "no name, which is reported once",
      change: { "metadata.name": "" },
      want: ["metadata.name: Required value: name or generateName is required"],
    },
    {
      name: "a group that only v1 may leave out, a version that is no label",
      change: { "metadata.name": "V2.", "spec.group": "", "spec.version": "V2" },
      want: [
        "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
        "spec.version: Invalid value: \"V2\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
      ],
    },
    {
      name: "a port beyond all ports",
      change: { "spec.service.port": 70000 },
      want: ["spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive"],
    },
    {
      name: "a condition that is neither",
      before: {},
      status: true,
      change: { status: { conditions: [{ type: "Available", status: "Maybe" }] } },
      want: ['status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False", "Unknown"'],
    },
    {
      name: "a group that is none",
      change: { "metadata.name": "v1._", "spec.group": "_" },
      want: [
        "spec.group: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "nothing in it",
      change: { spec: undefined },
      want: [
        'metadata.name: Invalid value: "v1.a.b": must be `spec.version+"."+spec.group`: "."',
        "spec.version: Required value",
      ],
    },
    {
      name: "the core group, which v1 names with nothing",
      change: { "metadata.name": "v1.", "spec.group": "" },
      want: [],
    },
    {
      name: "another version of the core group",
      change: { "metadata.name": "v2.", "spec.group": undefined, "spec.version": "v2" },
      want: ["spec.group: Required value: only v1 may have an empty group and it better be legacy kube"],
    },
    {
      name: "no service and nothing that only a service needs",
      change: { "spec.service": undefined, "spec.insecureSkipTLSVerify": false },
      want: [],
    },
    {
      name: "a bundle for a service whose certificate is verified",
      change: { "spec.insecureSkipTLSVerify": undefined, "spec.caBundle": "eA==" },
      want: [],
    },
    {
      name: "a name that is no path segment, which is reported once",
      change: { "metadata.name": "a/b" },
      want: ["metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    },
    {
      name: "a name that misses only its version",
      change: { "metadata.name": "a.b" },
      want: ['metadata.name: Invalid value: "a.b": must be `spec.version+"."+spec.group`: "v1.a.b"'],
    },
    ...["True", "False", "Unknown"].map((status) => ({
      name: `a condition that is ${status}`,
      before: {},
      status: true as const,
      change: { status: { conditions: [{ type: "Available", status }] } },
      want: [],
    })),
    {
      name: "a condition without a status beside one that has it",
      before: {},
      status: true,
      change: { status: { conditions: [{ type: "A", status: "True" }, { type: "B" }] } },
      want: ['status.conditions[1].status: Unsupported value: "": supported values: "True", "False", "Unknown"'],
    },
  ],
);

test("a group and a version that are both too long and of other characters are refused for both", () => {
  const [group, version] = ["_".repeat(254), "V".repeat(64)];
  const change = { "metadata.name": `${version}.${group}`, "spec.group": group, "spec.version": version };
  assert.deepEqual(
    faultsOf("apiservices.apiregistration.k8s.io", smallestObjects["apiservices"] ?? {}, { change }).map((fault) =>
      fault.replace(group, "GROUP").replace(version, "VERSION").slice(0, 80),
    ),
    [
      'spec.group: Invalid value: "GROUP": must be no more than 253 characters',
      'spec.group: Invalid value: "GROUP": a lowercase RFC 1123 subdomain must consist ',
      'spec.version: Invalid value: "VERSION": must be no more than 63 characters',
      'spec.version: Invalid value: "VERSION": a DNS-1035 label must consist of lower c',
    ],
  );
});
