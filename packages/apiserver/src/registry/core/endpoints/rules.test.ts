import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("endpoints", {}, [
  { name: "none", change: {}, want: [] },
  {
    name: "addresses and ports",
    change: {
      subsets: [
        {
          addresses: [{ ip: "x", hostname: "_" }, { ip: "127.0.0.1" }, { ip: "169.254.0.1", nodeName: "_" }],
          ports: [
            { port: 0, protocol: "X" },
            { port: 1, name: "A" },
          ],
        },
        {},
      ],
    },
    want: [
      'subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      "subsets[0].addresses[0].hostname: Invalid value: \"_\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      'subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address',
      'subsets[0].addresses[1].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
      "subsets[0].addresses[2].nodeName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'subsets[0].addresses[2].ip: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
      "subsets[0].ports[0].name: Required value",
      "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
      'subsets[0].ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
      "subsets[0].ports[1].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "subsets[1]: Required value: must specify `addresses` or `notReadyAddresses`",
    ],
  },
  {
    name: "a protocol of an application without a name",
    change: { subsets: [{ addresses: [{ ip: "1.1.1.1" }], ports: [{ port: 80, appProtocol: "" }] }] },
    want: [
      'subsets[0].ports[0].appProtocol: Invalid value: "": name part must be non-empty',
      "subsets[0].ports[0].appProtocol: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "another node of an address",
    change: { subsets: [{ addresses: [{ ip: "1.1.1.1", nodeName: "b" }] }] },
    before: { subsets: [{ addresses: [{ ip: "1.1.1.1", nodeName: "a" }] }] },
    want: [],
  },
  {
    name: "an address that is none, later",
    before: {},
    change: { subsets: [{ addresses: [{ ip: "x" }], ports: [{ port: 80 }] }] },
    want: [
      'subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      'subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address',
    ],
  },
  {
    name: "addresses that are not ready, ports of wrong applications",
    change: {
      subsets: [
        { notReadyAddresses: [{ ip: "x" }, { ip: "0.0.0.0" }, { ip: "224.0.0.1" }], ports: [{ port: 80, appProtocol: "a b" }] },
      ],
    },
    want: [
      'subsets[0].notReadyAddresses[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      'subsets[0].notReadyAddresses[0].ip: Invalid value: "x": must be a valid IP address',
      'subsets[0].notReadyAddresses[1].ip: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)',
      'subsets[0].notReadyAddresses[2].ip: Invalid value: "224.0.0.1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
      "subsets[0].ports[0].appProtocol: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "ports of no protocol and of an empty one",
    undefaulted: true,
    change: {
      subsets: [
        {
          addresses: [{ ip: "10.0.0.1" }],
          ports: [
            { name: "a", port: 80 },
            { name: "b", port: 80, protocol: "" },
          ],
        },
      ],
    },
    want: ["subsets[0].ports[0].protocol: Required value", "subsets[0].ports[1].protocol: Required value"],
  },
  {
    name: "a port without a name of two, and a node with dots",
    change: {
      subsets: [
        { addresses: [{ ip: "10.0.0.1", nodeName: "a.b", hostname: "h" }], ports: [{ port: 80, name: "a" }, { port: 65_535 }] },
        { notReadyAddresses: [{ ip: "fd00::1" }], ports: [{ port: 80, protocol: "SCTP", appProtocol: "a.b/c" }] },
      ],
    },
    want: ["subsets[0].ports[1].name: Required value"],
  },
  {
    name: "an empty name of a node",
    change: { subsets: [{ addresses: [{ ip: "10.0.0.1", nodeName: "" }] }] },
    want: [
      "subsets[0].addresses[0].nodeName: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "a host name that is none, of an address with a node",
    change: { subsets: [{ addresses: [{ ip: "10.0.0.1" }, { ip: "10.0.0.2", nodeName: "n", hostname: "a.b" }] }] },
    want: [
      "subsets[0].addresses[1].hostname: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  },
]);
