import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("storageversions.internal.apiserver.k8s.io", { metadata: { name: "apps.deployments" }, spec: {} }, [
  { name: "versions", change: {}, want: [] },
  {
    name: "servers",
    change: {
      "status.storageVersions": [
        { apiServerID: "", encodingVersion: "", decodableVersions: [] },
        { apiServerID: "a", encodingVersion: "v1", decodableVersions: ["v2"] },
      ],
    },
    before: {},
    status: true,
    want: [
      "status.storageVersions[0].apiServerID: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'status.storageVersions[0].encodingVersion: Invalid value: "": version part: must be non-empty',
      "status.storageVersions[0].decodableVersions: Invalid value: []string{}: decodableVersions must include encodingVersion ",
      'status.storageVersions[1].decodableVersions: Invalid value: []string{"v2"}: decodableVersions must include encodingVersion v1',
    ],
  },
]);
