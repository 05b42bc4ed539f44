import { testKindRules } from "../../../testing/kind-rules.ts";

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
  ],
);
