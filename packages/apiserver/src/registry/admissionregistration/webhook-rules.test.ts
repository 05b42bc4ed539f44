import { testKindRules } from "../../testing/kind-rules.ts";

/** Validation is the same for mutating and validating webhooks, except for reinvocationPolicy. */
const configuration = {
  webhooks: [
    {
      name: "a.b.c",
      clientConfig: { url: "https://a/b" },
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
      rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
    },
  ],
};
const again = [
  {
    name: "a policy of calling again",
    change: { "webhooks[0].reinvocationPolicy": "Often" },
    want: ['webhooks[0].reinvocationPolicy: Unsupported value: "Often": supported values: "IfNeeded", "Never"'],
  },
];

for (const [resource, own] of [
  ["mutatingwebhookconfigurations", again],
  ["validatingwebhookconfigurations", []],
] as const) {
  testKindRules(`${resource}.admissionregistration.k8s.io`, configuration, [
    { name: "a hook", change: {}, want: [] },
    {
      name: "a name without domain, of no versions and side effects",
      change: { "webhooks[0].name": "a", "webhooks[0].admissionReviewVersions": [], "webhooks[0].sideEffects": "Some" },
      want: [
        'webhooks[0].name: Invalid value: "a": should be a domain with at least three segments separated by dots',
        'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
        "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
      ],
    },
    {
      name: "unknown review versions",
      change: { "webhooks[0].admissionReviewVersions": ["v9", "v9", "-"] },
      want: [
        'webhooks[0].admissionReviewVersions[1]: Invalid value: "v9": duplicate version',
        "webhooks[0].admissionReviewVersions[2]: Invalid value: \"-\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        'webhooks[0].admissionReviewVersions: Invalid value: []string{"v9", "v9", "-"}: must include at least one of v1, v1beta1',
      ],
    },
    {
      name: "rules of nothing",
      change: { "webhooks[0].rules": [{ operations: [], apiGroups: [], apiVersions: [], resources: [] }] },
      want: [
        "webhooks[0].rules[0].operations: Required value",
        "webhooks[0].rules[0].apiGroups: Required value",
        "webhooks[0].rules[0].apiVersions: Required value",
        "webhooks[0].rules[0].resources: Required value",
      ],
    },
    {
      name: "rules of all and more",
      change: {
        "webhooks[0].rules": [
          {
            operations: ["*", "CREATE", "GET"],
            apiGroups: ["*", "a"],
            apiVersions: ["*", "a"],
            resources: ["*", "pods", "*/*", "a/*", "a/b"],
            scope: "World",
          },
        ],
      },
      want: [
        'webhooks[0].rules[0].operations: Invalid value: []admissionregistration.OperationType{"*", "CREATE", "GET"}: if \'*\' is present, must not specify other operations',
        'webhooks[0].rules[0].operations[2]: Unsupported value: "GET": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
        'webhooks[0].rules[0].apiGroups: Invalid value: []string{"*", "a"}: if \'*\' is present, must not specify other API groups',
        'webhooks[0].rules[0].apiVersions: Invalid value: []string{"*", "a"}: if \'*\' is present, must not specify other API versions',
        "webhooks[0].rules[0].resources[4]: Invalid value: \"a/b\": if 'a/*' is present, must not specify a/b",
        'webhooks[0].rules[0].resources: Invalid value: []string{"*", "pods", "*/*", "a/*", "a/b"}: if \'*/*\' is present, must not specify other resources',
        'webhooks[0].rules[0].resources: Invalid value: []string{"*", "pods", "*/*", "a/*", "a/b"}: if \'*\' is present, must not specify other resources without subresources',
        'webhooks[0].rules[0].scope: Unsupported value: "World": supported values: "*", "Cluster", "Namespaced"',
      ],
    },
    {
      name: "policies",
      change: { "webhooks[0].failurePolicy": "Maybe", "webhooks[0].matchPolicy": "Maybe", "webhooks[0].timeoutSeconds": 31 },
      want: [
        'webhooks[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
        'webhooks[0].matchPolicy: Unsupported value: "Maybe": supported values: "Equivalent", "Exact"',
        "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
      ],
    },
    {
      name: "no client and two of them",
      change: {
        "webhooks[0].clientConfig": {},
        "webhooks[1]": {
          name: "a.b.d",
          clientConfig: { url: "https://a", service: { name: "s", namespace: "n" } },
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
          rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
        },
      },
      want: [
        "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        "webhooks[1].clientConfig: Required value: exactly one of url or service is required",
      ],
    },
    {
      name: "a URL that is not safe",
      change: { "webhooks[0].clientConfig": { url: "http://u@a/b?c#d" } },
      want: [
        "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        'webhooks[0].clientConfig.url: Invalid value: "u": user information is not permitted in the URL',
        'webhooks[0].clientConfig.url: Invalid value: "d": fragments are not permitted in the URL',
        'webhooks[0].clientConfig.url: Invalid value: "c": query parameters are not permitted in the URL',
      ],
    },
    {
      name: "a service of nothing",
      change: { "webhooks[0].clientConfig": { service: { name: "", namespace: "", port: 0, path: "x//y" } } },
      want: [
        "webhooks[0].clientConfig.service.name: Required value: service name is required",
        "webhooks[0].clientConfig.service.namespace: Required value: service namespace is required",
        "webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
        "webhooks[0].clientConfig.service.path: Invalid value: \"x//y\": must start with a '/'",
        'webhooks[0].clientConfig.service.path: Invalid value: "x//y": segment[0] may not be empty',
        'webhooks[0].clientConfig.service.path: Invalid value: "x//y": segment[1] may not be empty',
      ],
    },
    {
      name: "a service without namespace, reported as its name",
      change: { "webhooks[0].clientConfig": { service: { name: "s", namespace: "", path: "//" } } },
      want: [
        "webhooks[0].clientConfig.service.name: Required value: service name is required",
        'webhooks[0].clientConfig.service.path: Invalid value: "//": segment[0] may not be empty',
      ],
    },
    {
      name: "a password in a URL",
      change: { "webhooks[0].clientConfig": { url: "https://u:p@a" } },
      want: ['webhooks[0].clientConfig.url: Invalid value: "u:p": user information is not permitted in the URL'],
    },
    {
      name: "selectors",
      change: {
        "webhooks[0].namespaceSelector": { matchLabels: { "a b": "c" } },
        "webhooks[0].objectSelector": { matchLabels: { "a b": "c" } },
      },
      want: [
        "webhooks[0].namespaceSelector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "webhooks[0].objectSelector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    },
    {
      name: "a name twice",
      change: {
        "webhooks[1]": {
          name: "a.b.c",
          clientConfig: { url: "https://a/b" },
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
          rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
        },
      },
      want: ['webhooks[1].name: Duplicate value: "a.b.c"'],
    },
    {
      name: "versions and side effects that were wrong before",
      before: { "webhooks[0].sideEffects": "Unknown", "webhooks[0].admissionReviewVersions": ["v3"] },
      change: { "webhooks[0].sideEffects": "Some" },
      want: [],
    },
    {
      name: "unknown side effects, where there were some before",
      before: { "webhooks[0].sideEffects": "Unknown" },
      change: { "webhooks[0].sideEffects": "Many" },
      want: ['webhooks[0].sideEffects: Unsupported value: "Many": supported values: "None", "NoneOnDryRun", "Some", "Unknown"'],
    },
    {
      name: "side effects where there were none before",
      before: {},
      change: { "webhooks[0].sideEffects": "Unknown" },
      want: ['webhooks[0].sideEffects: Unsupported value: "Unknown": supported values: "None", "NoneOnDryRun"'],
    },
    {
      name: "no name and no word of side effects",
      change: { "webhooks[0].name": "", "webhooks[0].sideEffects": undefined },
      want: [
        "webhooks[0].name: Required value",
        "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
      ],
    },
    {
      name: "a name that is no domain",
      change: { "webhooks[0].name": "a_b.c.d" },
      want: [
        "webhooks[0].name: Invalid value: \"a_b.c.d\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "a service's path with gaps",
      change: { "webhooks[0].clientConfig": { service: { name: "s", namespace: "n", path: "//a_b/" } } },
      want: [
        'webhooks[0].clientConfig.service.path: Invalid value: "//a_b/": segment[0] may not be empty',
        "webhooks[0].clientConfig.service.path: Invalid value: \"//a_b/\": segment[1]: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "a path for an URL",
      change: { "webhooks[0].clientConfig": { url: "a/b" } },
      want: [
        "webhooks[0].clientConfig.url: Invalid value: \"\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        'webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]',
      ],
    },
    {
      name: "an URL that cannot be read",
      change: { "webhooks[0].clientConfig": { url: "https://[" } },
      want: [
        `webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse "https://[": missing ']' in host; desired format: https://host[/path]`,
      ],
    },
    {
      name: "an URL without host",
      change: { "webhooks[0].clientConfig": { url: "file:///a" } },
      want: [
        "webhooks[0].clientConfig.url: Invalid value: \"file\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        'webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]',
      ],
    },
    {
      name: "empty versions and resources, and one that all are",
      change: { "webhooks[0].rules[0].apiVersions": [""], "webhooks[0].rules[0].resources": ["", "*/a", "b/a"] },
      want: [
        "webhooks[0].rules[0].apiVersions[0]: Required value",
        "webhooks[0].rules[0].resources[0]: Required value",
        "webhooks[0].rules[0].resources[2]: Invalid value: \"b/a\": if '*/a' is present, must not specify b/a",
      ],
    },
    ...own,
  ]);
}
