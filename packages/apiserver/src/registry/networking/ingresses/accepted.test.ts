/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "ingresses.networking.k8s.io";
const backend = { service: { name: "s", port: { number: 80 } } };
const path = (pathType: string, text?: string) => ({ pathType, backend, ...(text !== undefined && { path: text }) });
const paths = (...list: object[]) => ({ "spec.rules": [{ http: { paths: list } }] });
const at = "spec.rules[0].http.paths[0].path";
const notDomain = "a lowercase RFC 1123 subdomain must consist of";
const wildcard = (host: string, ...list: object[]) => ({ host, http: { paths: list } });

testAccepted([
  {
    resource,
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
    resource,
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
    resource,
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
    resource,
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
    resource,
    name: "a class by both ways, which only a new one may not have",
    before: {},
    taken: [{ "spec.ingressClassName": "a", "metadata.annotations": { "kubernetes.io/ingress.class": "b" } }],
  },
  {
    resource,
    name: "any secret where one was wrong before",
    before: { "spec.tls": [{ secretName: "s" }, { hosts: ["a"] }, { secretName: "_" }] },
    taken: [{}, { "spec.tls": [{ secretName: "a b" }] }],
    refused: [[{ "spec.tls": [{ hosts: ["_"] }] }, `spec.tls[0].hosts[0]: Invalid value: "_": ${notDomain}`]],
  },
  {
    resource,
    name: "only good secrets where all were good before",
    before: { "spec.tls": [{ secretName: "s" }, {}] },
    taken: [{ "spec.tls": [{ secretName: "t" }, { secretName: "" }] }],
    refused: [
      [{ "spec.tls": [{ secretName: "s" }, { secretName: "_" }] }, `spec.tls[1].secretName: Invalid value: "_": ${notDomain}`],
    ],
  },
  {
    resource,
    name: "wrong paths of a wildcard where one was wrong before, but of no other host",
    before: { "spec.rules": [wildcard("*.a", path("Prefix", "/")), wildcard("*.b")] },
    taken: [{ "spec.rules": [wildcard("*.c"), wildcard("*.d", path("Other"))] }],
    refused: [
      [{ "spec.rules": [wildcard("a")] }, "spec.rules[0].http.paths: Required value"],
      [{ "spec.rules": [wildcard("*.a_b")] }, 'spec.rules[0].host: Invalid value: "*.a_b": a wildcard DNS-1123 subdomain'],
    ],
  },
  {
    resource,
    name: "no wrong paths of a wildcard where those of a plain host were wrong before",
    before: { "spec.rules": [wildcard("a"), wildcard("*.a", path("Prefix", "/"))] },
    taken: [{ "spec.rules": [wildcard("*.a", path("Exact", "/"))] }],
    refused: [[{ "spec.rules": [wildcard("*.a")] }, "spec.rules[0].http.paths: Required value"]],
  },
  {
    resource,
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
]);
