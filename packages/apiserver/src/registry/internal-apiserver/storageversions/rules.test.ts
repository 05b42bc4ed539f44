import { testKindRules } from "../../../testing/kind-rules.ts";

const badVersion =
  "group part: must be non-empty,version part: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const badName =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

testKindRules("storageversions.internal.apiserver.k8s.io", { metadata: { name: "apps.deployments" }, spec: {} }, [
  { name: "versions", change: {}, want: [] },
  ...["a.b", "a.b.c"].map((name) => ({ name: `the name ${name}`, change: { "metadata.name": name }, want: [] })),
  {
    name: "a name without a resource",
    change: { "metadata.name": "apps" },
    want: ['metadata.name: Invalid value: "apps": name must be in the form of <group>.<resource>'],
  },
  {
    name: "a group that is no domain",
    change: { "metadata.name": "A.b" },
    want: [
      "metadata.name: Invalid value: \"A.b\": the group segment a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "a resource of one wrong letter",
    change: { "metadata.name": "apps.1" },
    want: [
      "metadata.name: Invalid value: \"apps.1\": the resource segment a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    ],
  },
  {
    name: "a condition without a status",
    before: {},
    status: true,
    change: { "status.conditions": [{ type: "A", reason: "r", message: "m" }] },
    want: [
      'status[0].status: Invalid value: "A": name part must be non-empty',
      `status[0].status: Invalid value: "A": ${badName}`,
    ],
  },
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
  {
    name: "versions that are none, of servers that agree and do not say so",
    before: {},
    status: true,
    change: {
      "status.storageVersions": [
        { apiServerID: "a", encodingVersion: "/V", decodableVersions: ["/V"] },
        { apiServerID: "b", encodingVersion: "/V", decodableVersions: ["/V", "a/b/c"] },
      ],
    },
    want: [
      ...[0, 1].flatMap((i) => [
        `status.storageVersions[${i}].encodingVersion: Invalid value: "/V": ${badVersion}`,
        `status.storageVersions[${i}].decodableVersions[0]: Invalid value: "/V": ${badVersion}`,
      ]),
      "status.storageVersions[1].decodableVersions[1]: Invalid value: \"a/b/c\": an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')",
      'status.commonEncodingVersion: Invalid value: "null": the common encoding version is /V',
    ],
  },
  {
    name: "a condition three times, each of which names the one before it",
    before: {},
    status: true,
    change: { "status.conditions": Array(3).fill({ type: "A", status: "True", reason: "r", message: "m" }) },
    want: [0, 1].map(
      (before) =>
        `status[${before + 1}].type: Invalid value: "A": the type of the condition is not unique, it also appears in conditions[${before}]`,
    ),
  },
  {
    name: "conditions without reasons, twice",
    before: {},
    status: true,
    change: {
      "status.conditions": [
        { type: "A", status: "True", reason: "r", message: "m" },
        { type: "A", status: "" },
      ],
    },
    want: [
      'status[1].type: Invalid value: "A": the type of the condition is not unique, it also appears in conditions[0]',
      'status[1].status: Invalid value: "A": name part must be non-empty',
      `status[1].status: Invalid value: "A": ${badName}`,
      "status[1].reason: Required value: reason cannot be empty",
      "status[1].message: Required value: message cannot be empty",
    ],
  },
  {
    name: "a server twice, which is not what both say",
    status: true,
    before: {},
    change: {
      "status.storageVersions": [
        { apiServerID: "a", encodingVersion: "v1", decodableVersions: ["v1"] },
        { apiServerID: "a", encodingVersion: "v2", decodableVersions: ["v2"] },
      ],
      "status.commonEncodingVersion": "v1",
    },
    want: [
      'status.storageVersions[1].apiServerID: Duplicate value: "a"',
      'status.commonEncodingVersion: Invalid value: "v1": should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet',
    ],
  },
  {
    name: "another common version",
    status: true,
    before: {},
    change: {
      "status.storageVersions": [{ apiServerID: "a", encodingVersion: "v1", decodableVersions: ["v1"] }],
      "status.commonEncodingVersion": "v2",
    },
    want: ['status.commonEncodingVersion: Invalid value: "v2": the actual common encoding version is v1'],
  },
  {
    name: "a condition of no type",
    before: {},
    status: true,
    change: { "status.conditions": [{ type: "a b", status: "True", reason: "r", message: "m" }] },
    want: [
      "status[0].type: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
]);
