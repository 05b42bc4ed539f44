import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("networkpolicies.networking.k8s.io", { spec: { podSelector: {} } }, [
  { name: "a policy", change: {}, want: [] },
  { name: "a policy without a spec", undefaulted: true, change: { spec: undefined }, want: [] },
  {
    name: "a selector",
    change: { "spec.podSelector": { matchLabels: { "a b": "c" } } },
    want: [
      "spec.podSelector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "ports",
    change: {
      "spec.ingress": [
        {
          ports: [{ port: 0 }, { port: "A" }, { protocol: "X", endPort: 5 }, { port: "a", endPort: 5 }, { port: 10, endPort: 5 }],
        },
      ],
    },
    want: [
      "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
      'spec.ingress[0].ports[1].port: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      'spec.ingress[0].ports[1].port: Invalid value: "A": must contain at least one letter (a-z)',
      'spec.ingress[0].ports[2].protocol: Unsupported value: "X": supported values: "TCP", "UDP", "SCTP"',
      "spec.ingress[0].ports[2].endPort: Invalid value: 5: may not be specified when `port` is not specified",
      "spec.ingress[0].ports[3].endPort: Invalid value: 5: may not be specified when `port` is non-numeric",
      "spec.ingress[0].ports[4].endPort: Invalid value: 10: must be greater than or equal to `port`",
    ],
  },
  {
    name: "peers",
    change: {
      "spec.ingress": [
        {
          from: [
            {},
            { podSelector: {}, ipBlock: { cidr: "10.0.0.0/8" } },
            { ipBlock: { cidr: "" } },
            { ipBlock: { cidr: "x" } },
            { ipBlock: { cidr: "10.0.0.0/8", except: ["11.0.0.0/24", "10.0.0.0/8", "x", "y"] } },
          ],
        },
      ],
    },
    want: [
      "spec.ingress[0].from[0]: Required value: must specify a peer",
      "spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer",
      "spec.ingress[0].from[2].ipBlock.cidr: Required value",
      'spec.ingress[0].from[3].ipBlock.cidr: Invalid value: "x": not a valid CIDR',
      'spec.ingress[0].from[4].ipBlock.except[0]: Invalid value: "11.0.0.0/24": must be a strict subset of `cidr`',
      'spec.ingress[0].from[4].ipBlock.except[1]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`',
      'spec.ingress[0].from[4].ipBlock.except[2]: Invalid value: "x": not a valid CIDR',
    ],
  },
  {
    name: "peers of egress",
    change: { "spec.egress": [{ to: [{}], ports: [{ port: 0 }] }] },
    want: [
      "spec.egress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
      "spec.egress[0].to[0]: Required value: must specify a peer",
    ],
  },
  {
    name: "types",
    change: { "spec.policyTypes": ["Ingress", "Other"] },
    want: ['spec.policyTypes[1]: Unsupported value: "Other": supported values: "Ingress", "Egress"'],
  },
  {
    name: "too many types",
    change: { "spec.policyTypes": ["Ingress", "Egress", "Ingress"] },
    want: [
      'spec.policyTypes: Invalid value: []networking.PolicyType{"Ingress", "Egress", "Ingress"}: may not specify more than two policyTypes',
    ],
  },
  {
    name: "an end beyond all ports, selectors that are none",
    change: {
      "spec.ingress": [
        {
          ports: [{ port: 80, endPort: 70000 }],
          from: [
            {
              podSelector: {
                matchExpressions: [
                  { key: "a b", operator: "In" },
                  { key: "a", operator: "Exists", values: ["b"] },
                  { key: "a", operator: "Like" },
                ],
              },
              namespaceSelector: { matchLabels: { "a b": "c" } },
            },
          ],
        },
      ],
    },
    want: [
      "spec.ingress[0].ports[0].endPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
      "spec.ingress[0].from[0].podSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      "spec.ingress[0].from[0].podSelector.matchExpressions[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.ingress[0].from[0].podSelector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      'spec.ingress[0].from[0].podSelector.matchExpressions[2].operator: Invalid value: "Like": not a valid selector operator',
      "spec.ingress[0].from[0].namespaceSelector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
]);
