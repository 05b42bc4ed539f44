/** What ingresses, their classes and network policies may say: values next to those that rules.test.ts of each kind sees refused. */
import { testAccepted } from "../../testing/accepted.ts";

const [ingresses, classes, policies] = ["ingresses", "ingressclasses", "networkpolicies"].map(
  (resource) => `${resource}.networking.k8s.io`,
) as [string, string, string];
const backend = { service: { name: "s", port: { number: 80 } } };
const path = (pathType: string, text?: string) => ({ pathType, backend, ...(text !== undefined && { path: text }) });
const paths = (...list: object[]) => ({ "spec.rules": [{ http: { paths: list } }] });
const at = "spec.rules[0].http.paths[0].path";
const notDomain = "a lowercase RFC 1123 subdomain must consist of";
const wildcard = (host: string, ...list: object[]) => ({ host, http: { paths: list } });
const peers = (...from: object[]) => ({ "spec.ingress": [{ from }] });
const ports = (...list: object[]) => ({ "spec.egress": [{ ports: list }] });

testAccepted([
  {
    resource: ingresses,
    name: "paths of each type",
    taken: [
      paths(path("Exact", "/a/b/"), path("Prefix", "/"), path("Prefix", "/a/.b/..c/%2e")),
      paths(path("ImplementationSpecific"), path("ImplementationSpecific", ""), path("ImplementationSpecific", "//a/../b/%2F/.")),
    ],
    refused: [
      [paths(path("Exact")), `${at}: Invalid value: "": must be an absolute path`],
      [paths(path("Prefix", "")), `${at}: Invalid value: "": must be an absolute path`],
      [paths(path("Prefix", "/a/../b")), `${at}: Invalid value: "/a/../b": must not contain '/../'`],
      [paths(path("Prefix", "/a%2Fb")), `${at}: Invalid value: "/a%2Fb": must not contain '%2F'`],
      [paths(path("Exact", "/a/.")), `${at}: Invalid value: "/a/.": cannot end with '/.'`],
      [paths(path("Exact", "/..")), `${at}: Invalid value: "/..": cannot end with '/..'`],
    ],
  },
  {
    resource: ingresses,
    name: "hosts, with and without a wildcard",
    taken: ["a", "a.b", "*.a", "*.a.b"].map((host) => ({
      "spec.rules": [{ host }],
      "spec.tls": [{ hosts: [host], secretName: "s.t" }],
    })),
    refused: [
      [{ "spec.rules": [{ host: "a.*.b" }] }, 'spec.rules[0].host: Invalid value: "a.*.b": a wildcard DNS-1123 subdomain'],
      [{ "spec.rules": [{ host: "*" }] }, 'spec.rules[0].host: Invalid value: "*": a wildcard DNS-1123 subdomain'],
      [{ "spec.tls": [{ hosts: ["a", "*a"] }] }, 'spec.tls[0].hosts[1]: Invalid value: "*a": a wildcard DNS-1123 subdomain'],
    ],
  },
  {
    resource: ingresses,
    name: "backends",
    taken: [
      { "spec.defaultBackend": { resource: { kind: "K", name: "n" } } },
      { "spec.defaultBackend": { resource: { apiGroup: "a.b", kind: "K", name: "n" } } },
      { "spec.defaultBackend": { service: { name: "s", port: { name: "a".repeat(15) } } } },
      { "spec.defaultBackend": { service: { name: "a".repeat(63), port: { number: 65_535 } } } },
      { "spec.defaultBackend": undefined, "spec.rules": [{}] },
    ],
    refused: [
      [
        { "spec.defaultBackend": { service: { name: "s", port: { number: 65_536 } } } },
        "spec.defaultBackend.service.port.number: Invalid value: 65536: must be between 1 and 65535, inclusive",
      ],
      [
        { "spec.defaultBackend": { service: { name: "s", port: { number: -1 } } } },
        "spec.defaultBackend.service.port.number: Invalid value: -1: must be between 1 and 65535, inclusive",
      ],
      [
        { "spec.defaultBackend": { resource: { apiGroup: "", kind: "K", name: "n" } } },
        'spec.defaultBackend.resource.apiGroup: Invalid value: ""',
      ],
    ],
  },
  {
    resource: ingresses,
    name: "a class by one way",
    taken: [{ "spec.ingressClassName": "a.b" }, { "metadata.annotations": { "kubernetes.io/ingress.class": "_" } }],
    refused: [
      [
        { "spec.ingressClassName": "a", "metadata.annotations": { "kubernetes.io/ingress.class": "" } },
        'annotations.kubernetes.io/ingress.class: Invalid value: "": can not be set when the class field is also set',
      ],
    ],
  },
  {
    resource: ingresses,
    name: "a class by both ways, which only a new one may not have",
    before: {},
    taken: [{ "spec.ingressClassName": "a", "metadata.annotations": { "kubernetes.io/ingress.class": "b" } }],
  },
  {
    resource: ingresses,
    name: "any secret where one was wrong before",
    before: { "spec.tls": [{ secretName: "s" }, { hosts: ["a"] }, { secretName: "_" }] },
    taken: [{}, { "spec.tls": [{ secretName: "a b" }] }],
    refused: [[{ "spec.tls": [{ hosts: ["_"] }] }, `spec.tls[0].hosts[0]: Invalid value: "_": ${notDomain}`]],
  },
  {
    resource: ingresses,
    name: "only good secrets where all were good before",
    before: { "spec.tls": [{ secretName: "s" }, {}] },
    taken: [{ "spec.tls": [{ secretName: "t" }, { secretName: "" }] }],
    refused: [
      [{ "spec.tls": [{ secretName: "s" }, { secretName: "_" }] }, `spec.tls[1].secretName: Invalid value: "_": ${notDomain}`],
    ],
  },
  {
    resource: ingresses,
    name: "wrong paths of a wildcard where one was wrong before, but of no other host",
    before: { "spec.rules": [wildcard("*.a", path("Prefix", "/")), wildcard("*.b")] },
    taken: [{ "spec.rules": [wildcard("*.c"), wildcard("*.d", path("Other"))] }],
    refused: [
      [{ "spec.rules": [wildcard("a")] }, "spec.rules[0].http.paths: Required value"],
      [{ "spec.rules": [wildcard("*.a_b")] }, 'spec.rules[0].host: Invalid value: "*.a_b": a wildcard DNS-1123 subdomain'],
    ],
  },
  {
    resource: ingresses,
    name: "no wrong paths of a wildcard where those of a plain host were wrong before",
    before: { "spec.rules": [wildcard("a"), wildcard("*.a", path("Prefix", "/"))] },
    taken: [{ "spec.rules": [wildcard("*.a", path("Exact", "/"))] }],
    refused: [[{ "spec.rules": [wildcard("*.a")] }, "spec.rules[0].http.paths: Required value"]],
  },
  {
    resource: ingresses,
    name: "addresses and names in the status",
    status: true,
    before: {},
    taken: [
      { "status.loadBalancer.ingress": [{ ip: "10.0.0.1" }, { ip: "fd00::1", hostname: "a.b" }, { ip: "", hostname: "" }] },
    ],
    refused: [
      [
        { "status.loadBalancer.ingress": [{ hostname: "*.a" }] },
        `status.loadBalancer.ingress[0].hostname: Invalid value: "*.a": ${notDomain}`,
      ],
    ],
  },
  {
    resource: classes,
    name: "controllers that are a domain and a path",
    taken: ["a/b", "a.b/c/d", "a.b//c", "a.b/c/", "a.b/C-._~!$&'()*+,;=:%zz", `a/${"b".repeat(248)}`].map((controller) => ({
      "spec.controller": controller,
    })),
    refused: [
      ...["a.b", "a.b/", "/b", "/"].map(
        (controller) =>
          [
            { "spec.controller": controller },
            `spec.controller: Invalid value: "${controller}": must be a domain-prefixed path`,
          ] as const,
      ),
      [{ "spec.controller": "a/b@c" }, 'spec.controller: Invalid value: "b@c": Invalid path'],
      [{ "spec.controller": `a/${"b".repeat(249)}` }, "spec.controller: Too long: must have at most 250 bytes"],
    ],
  },
  {
    resource: classes,
    name: "parameters of either scope",
    taken: [
      { "spec.parameters": { kind: "K", name: "n" } },
      { "spec.parameters": { apiGroup: "a.b", kind: "K", name: "n", scope: "Cluster" } },
      { "spec.parameters": { kind: "K", name: "n", scope: "Namespace", namespace: "a".repeat(63) } },
    ],
    refused: [
      [
        { "spec.parameters": { kind: "K", name: "n", scope: "Namespace", namespace: "" } },
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
      ],
      [
        { "spec.parameters": { kind: "K", name: "n", scope: "Cluster", namespace: "" } },
        "spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'",
      ],
    ],
  },
  {
    resource: classes,
    name: "other parameters of the same controller",
    before: {},
    taken: [{ "spec.parameters": { kind: "K", name: "n" } }],
  },
  {
    resource: policies,
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
    resource: policies,
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
    resource: policies,
    name: "types, one or both of them",
    taken: [["Ingress"], ["Egress"], ["Egress", "Ingress"], []].map((types) => ({ "spec.policyTypes": types })),
  },
]);
