import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "endpointslices.discovery.k8s.io",
  { addressType: "IPv4", endpoints: [{ addresses: ["1.1.1.1"] }], ports: [{ port: 80 }] },
  [
    { name: "a slice", change: {}, want: [] },
    {
      name: "a type",
      change: { addressType: "Own" },
      want: ['addressType: Unsupported value: "Own": supported values: "FQDN", "IPv4", "IPv6"'],
    },
    { name: "no type", change: { addressType: "" }, want: ["addressType: Required value"] },
    {
      name: "addresses",
      change: {
        endpoints: [
          { addresses: [] },
          { addresses: ["x"] },
          { addresses: ["::1"] },
          { addresses: ["127.0.0.1"], hostname: "_", nodeName: "_" },
        ],
      },
      want: [
        "endpoints[0].addresses: Required value: must contain at least 1 address",
        'endpoints[1].addresses[0]: Invalid value: "x": must be a valid IPv4 address',
        'endpoints[1].addresses[0]: Invalid value: "x": must be a valid IP address',
        'endpoints[2].addresses[0]: Invalid value: "::1": must be a valid IPv4 address',
        'endpoints[2].addresses[0]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        'endpoints[3].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        "endpoints[3].nodeName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        "endpoints[3].hostname: Invalid value: \"_\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      ],
    },
    {
      name: "names",
      change: { addressType: "FQDN", endpoints: [{ addresses: ["_"] }] },
      want: [
        "endpoints[0].addresses[0]: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "ports",
      change: { ports: [{ name: "A", protocol: "X", port: 80, appProtocol: "a b" }, { name: "a" }, { name: "a" }] },
      want: [
        "ports[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        'ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
        "ports[0].appProtocol: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'ports[2].name: Duplicate value: "a"',
      ],
    },
    {
      name: "topology",
      requestVersion: "v1beta1",
      change: { endpoints: [{ addresses: ["1.1.1.1"], deprecatedTopology: { "a b": "c" } }] },
      want: [
        "endpoints[0].deprecatedTopology: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ],
    },
    {
      name: "hints",
      gates: { TopologyAwareHints: true },
      change: { endpoints: [{ addresses: ["1.1.1.1"], hints: { forZones: [{ name: "a" }, { name: "a" }, { name: "_" }] } }] },
      want: [
        'endpoints[0].hints.forZones[1].name: Duplicate value: "a"',
        "endpoints[0].hints.forZones[2].name: Invalid value: \"_\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      ],
    },
    {
      name: "another type",
      change: { addressType: "FQDN", endpoints: [{ addresses: ["a.b"] }] },
      before: {},
      want: ['addressType: Invalid value: "FQDN": field is immutable'],
    },
    {
      name: "too many endpoints",
      change: { endpoints: Array.from({ length: 1001 }, () => ({ addresses: ["1.1.1.1"] })) },
      want: ["endpoints: Too many: 1001: must have at most 1000 items"],
    },
    {
      name: "hints without their gate, which drops them",
      change: { endpoints: [{ addresses: ["1.1.1.1"], hints: { forZones: [{ name: "_" }] } }] },
      want: [],
    },
    {
      name: "hints without their gate where there were some",
      before: { endpoints: [{ addresses: ["1.1.1.1"], hints: { forZones: [{ name: "a" }] } }] },
      change: { endpoints: [{ addresses: ["1.1.1.1"], hints: { forZones: [{ name: "a" }, { name: "a" }] } }] },
      want: ['endpoints[0].hints.forZones[1].name: Duplicate value: "a"'],
    },
    {
      name: "too many addresses, topology and zones",
      requestVersion: "v1beta1",
      gates: { TopologyAwareHints: true },
      change: {
        endpoints: [
          {
            addresses: Array.from({ length: 101 }, () => "1.1.1.1"),
            deprecatedTopology: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, ""])),
            hints: { forZones: Array.from({ length: 9 }, (_, i) => ({ name: `z${i}` })) },
          },
        ],
      },
      want: [
        "endpoints[0].addresses: Too many: 101: must have at most 100 items",
        "endpoints[0].deprecatedTopology: Too many: 17: must have at most 16 items",
        "endpoints[0].hints.forZones: Too many: 9: must have at most 8 items",
      ],
    },
    {
      name: "too many ports",
      change: { ports: Array.from({ length: 20_001 }, (_, i) => ({ name: `p${i}`, port: 80 })) },
      want: ["ports: Too many: 20001: must have at most 20000 items"],
    },
    {
      name: "an address of the other family",
      change: { addressType: "IPv6" },
      want: ['endpoints[0].addresses[0]: Invalid value: "1.1.1.1": must be a valid IPv6 address'],
    },
    {
      name: "names that are no domains",
      change: { addressType: "FQDN", endpoints: [{ addresses: ["", "a", "a_b"] }] },
      want: [
        "endpoints[0].addresses[0]: Required value",
        'endpoints[0].addresses[1]: Invalid value: "a": should be a domain with at least two segments separated by dots',
        "endpoints[0].addresses[2]: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "topology of v1, which is dropped",
      change: { endpoints: [{ addresses: ["1.1.1.1"], deprecatedTopology: { "a b": "c" } }] },
      want: [],
    },
    {
      name: "a domain that ends with a dot and one of two segments",
      change: { addressType: "FQDN", endpoints: [{ addresses: ["a.b.", "a.b"] }] },
      want: [],
    },
    {
      name: "a domain of one segment that ends with a dot",
      change: { addressType: "FQDN", endpoints: [{ addresses: ["a."] }] },
      want: ['endpoints[0].addresses[0]: Invalid value: "a": should be a domain with at least two segments separated by dots'],
    },
    {
      name: "two ports without a name",
      change: { ports: [{ port: 80 }, { port: 81 }] },
      want: ['ports[1].name: Duplicate value: ""'],
    },
    {
      name: "any protocol, and an application protocol with a domain",
      change: {
        ports: ["TCP", "UDP", "SCTP"].map((protocol) => ({ name: protocol.toLowerCase(), protocol, appProtocol: "a.b/c" })),
      },
      want: [],
    },
    { name: "no protocol", change: { "ports[0].protocol": "" }, want: ["ports[0].protocol: Required value"] },
    {
      name: "a domain of a long label",
      change: { addressType: "FQDN", endpoints: [{ addresses: [`${"a".repeat(64)}.com`] }] },
      want: [
        'endpoints[0].addresses[0]: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 characters',
      ],
    },
    {
      name: "special addresses of the other family",
      before: { addressType: "IPv6" },
      change: {
        endpoints: [
          { addresses: ["::1"] },
          { addresses: ["::"] },
          { addresses: ["ff02::1"] },
          { addresses: ["fe80::1"] },
          { addresses: ["10.0.0.1"] },
        ],
      },
      want: [
        'endpoints[0].addresses[0]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        'endpoints[1].addresses[0]: Invalid value: "::": may not be unspecified (::)',
        'endpoints[2].addresses[0]: Invalid value: "ff02::1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
        'endpoints[3].addresses[0]: Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
        'endpoints[4].addresses[0]: Invalid value: "10.0.0.1": must be a valid IPv6 address',
      ],
    },
  ],
);
