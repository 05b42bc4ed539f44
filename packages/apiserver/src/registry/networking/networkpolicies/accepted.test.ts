/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "networkpolicies.networking.k8s.io";
const peers = (...from: object[]) => ({ "spec.ingress": [{ from }] });
const ports = (...list: object[]) => ({ "spec.egress": [{ ports: list }] });

testAccepted([
  {
    resource,
    name: "peers of each kind",
    taken: [
      peers({ podSelector: {} }, { namespaceSelector: {} }, { podSelector: {}, namespaceSelector: {} }),
      peers({ ipBlock: { cidr: "10.0.0.0/8", except: ["10.0.0.0/9", "10.255.255.255/32"] } }),
      peers({ ipBlock: { cidr: "fd00::/64", except: ["fd00::/65"] } }),
    ],
    refused: [
      [
        peers({ namespaceSelector: {}, ipBlock: { cidr: "10.0.0.0/8" } }),
        "spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer",
      ],
      [
        peers({ ipBlock: { cidr: "10.0.0.0/8", except: ["10.0.0.0/7"] } }),
        'spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "10.0.0.0/7": must be a strict subset of `cidr`',
      ],
    ],
  },
  {
    resource,
    name: "ports of each protocol, by number and name",
    taken: [
      ports({ protocol: "TCP" }, { protocol: "UDP", port: 1 }, { protocol: "SCTP", port: 65_535 }, { port: "a".repeat(15) }),
      ports({ port: 1, endPort: 1 }, { port: 1, endPort: 65_535 }),
    ],
    refused: [
      [
        ports({ port: 2, endPort: 1 }),
        "spec.egress[0].ports[0].endPort: Invalid value: 2: must be greater than or equal to `port`",
      ],
      [ports({ port: 65_536 }), "spec.egress[0].ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive"],
      [
        ports({ port: 1, endPort: 65_536 }),
        "spec.egress[0].ports[0].endPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
      ],
      [
        ports({ port: "a".repeat(16) }),
        `spec.egress[0].ports[0].port: Invalid value: "${"a".repeat(16)}": must be no more than 15 characters`,
      ],
      [
        ports({ protocol: "" }),
        'spec.egress[0].ports[0].protocol: Unsupported value: "": supported values: "TCP", "UDP", "SCTP"',
      ],
    ],
  },
  {
    resource,
    name: "types, one or both of them",
    taken: [["Ingress"], ["Egress"], ["Egress", "Ingress"], []].map((types) => ({ "spec.policyTypes": types })),
  },
]);
