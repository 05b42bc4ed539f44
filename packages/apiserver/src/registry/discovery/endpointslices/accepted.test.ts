/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "endpointslices.discovery.k8s.io";
const long = (length: number): string => "a".repeat(length);
/** A subdomain of 253 characters, and what makes it one too many. */
const subdomain = [long(63), long(63), long(63), long(61)].join(".");
const endpoint = (more: object) => ({ endpoints: [{ addresses: ["10.0.0.1"], ...more }] });
const second = (more: object) => ({ endpoints: [{ addresses: ["10.0.0.1"] }, { addresses: ["10.0.0.2"], ...more }] });
const addresses = (addressType: string, ...list: string[]) => ({ addressType, endpoints: [{ addresses: list }] });
const zones = (...names: string[]) => endpoint({ hints: { forZones: names.map((name) => ({ name })) } });
const tooLong = (length: number): string => `must be no more than ${length} characters`;

testAccepted([
  {
    resource,
    name: "addresses of each type",
    taken: [
      addresses("IPv4", "10.0.0.1", "1.2.3.4"),
      addresses("IPv6", "fd00::1", "2001:db8::1"),
      addresses("FQDN", "a.b", `${long(63)}.b`),
      { endpoints: [] },
      { endpoints: undefined, ports: undefined },
    ],
    refused: [
      [addresses("IPv4", "10.0.0.1", "0.0.0.0"), 'endpoints[0].addresses[1]: Invalid value: "0.0.0.0": may not be unspecified'],
      [
        addresses("IPv4", "169.254.0.1"),
        'endpoints[0].addresses[0]: Invalid value: "169.254.0.1": may not be in the link-local range',
      ],
      [second({ addresses: [] }), "endpoints[1].addresses: Required value: must contain at least 1 address"],
    ],
  },
  {
    resource,
    name: "names of hosts and nodes up to their limits",
    taken: [endpoint({ hostname: long(63) }), endpoint({ nodeName: subdomain }), second({ hostname: "a", nodeName: "a.b" })],
    refused: [
      [endpoint({ hostname: long(64) }), `endpoints[0].hostname: Invalid value: "${long(64)}": ${tooLong(63)}`],
      [endpoint({ hostname: "a.b" }), 'endpoints[0].hostname: Invalid value: "a.b": a lowercase RFC 1123 label'],
      [endpoint({ hostname: "" }), 'endpoints[0].hostname: Invalid value: "": a lowercase RFC 1123 label'],
      [endpoint({ nodeName: `${subdomain}a` }), `endpoints[0].nodeName: Invalid value: "${subdomain}a": ${tooLong(253)}`],
      [second({ nodeName: "" }), 'endpoints[1].nodeName: Invalid value: "": a lowercase RFC 1123 subdomain'],
    ],
  },
  {
    resource,
    gates: { TopologyAwareHints: true },
    name: "hints for zones",
    taken: [zones(long(63), "a_b", ""), zones("a.b", "C")],
    refused: [
      [zones("a", long(64)), `endpoints[0].hints.forZones[1].name: Invalid value: "${long(64)}": ${tooLong(63)}`],
      [zones("a", "b", "a"), 'endpoints[0].hints.forZones[2].name: Duplicate value: "a"'],
    ],
  },
  {
    resource,
    requestVersion: "v1beta1",
    name: "topology",
    taken: [endpoint({ deprecatedTopology: { "a.b/c": "", d: long(63) } })],
    refused: [
      [
        endpoint({ deprecatedTopology: { a: long(64) } }),
        `endpoints[0].deprecatedTopology: Invalid value: "${long(64)}": ${tooLong(63)}`,
      ],
    ],
  },
  {
    resource,
    name: "ports",
    taken: [
      { ports: [{ name: long(63) }, { name: "", port: 0 }] },
      {
        ports: [
          { name: "a", appProtocol: "HTTP" },
          { name: "b", appProtocol: `a.b/${long(63)}` },
        ],
      },
    ],
    refused: [
      [{ ports: [{ name: long(64) }] }, `ports[0].name: Invalid value: "${long(64)}": ${tooLong(63)}`],
      [{ ports: [{}, { name: "a.b" }] }, 'ports[1].name: Invalid value: "a.b": a lowercase RFC 1123 label'],
    ],
  },
  {
    resource,
    name: "anything but another type of address",
    before: endpoint({ nodeName: "n" }),
    taken: [{ endpoints: [] }, endpoint({ nodeName: "m" }), { ports: [{ port: 1 }] }],
    refused: [[{ addressType: "FQDN", endpoints: [] }, 'addressType: Invalid value: "FQDN": field is immutable']],
  },
]);
