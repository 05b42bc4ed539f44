import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "ingresses.networking.k8s.io",
  {
    spec: {
      rules: [
        {
          host: "a.b",
          http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "s", port: { number: 80 } } } }] },
        },
      ],
    },
  },
  [
    { name: "an ingress", change: {}, want: [] },
    {
      name: "nothing in it",
      change: { spec: {} },
      want: ["spec: Invalid value: []networking.IngressRule(nil): either `defaultBackend` or `rules` must be specified"],
    },
    {
      name: "hosts",
      change: { "spec.rules": [{ host: "1.1.1.1" }, { host: "a_b" }, { host: "*.a_b" }], "spec.tls": [{ hosts: ["_"] }] },
      want: [
        'spec.rules[0].host: Invalid value: "1.1.1.1": must be a DNS name, not an IP address',
        "spec.rules[1].host: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        "spec.rules[2].host: Invalid value: \"*.a_b\": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        "spec.tls[0].hosts[0]: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "paths",
      change: {
        "spec.rules[0].http.paths": [
          { pathType: "Prefix", path: "x", backend: { service: { name: "s", port: { number: 80 } } } },
          { pathType: "Exact", path: "/a//b/./%2f", backend: { service: { name: "s", port: { number: 80 } } } },
          { path: "/", pathType: "Own", backend: { service: { name: "s", port: { number: 80 } } } },
        ],
      },
      want: [
        'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path',
        "spec.rules[0].http.paths[1].path: Invalid value: \"/a//b/./%2f\": must not contain '//'",
        "spec.rules[0].http.paths[1].path: Invalid value: \"/a//b/./%2f\": must not contain '/./'",
        "spec.rules[0].http.paths[1].path: Invalid value: \"/a//b/./%2f\": must not contain '%2f'",
        'spec.rules[0].http.paths[2].pathType: Unsupported value: "Own": supported values: "Exact", "ImplementationSpecific", "Prefix"',
      ],
    },
    {
      name: "no paths and no kind of path",
      change: {
        "spec.rules": [
          { http: { paths: [] } },
          { http: { paths: [{ path: "/", backend: { service: { name: "s", port: { number: 80 } } } }] } },
        ],
      },
      want: [
        "spec.rules[0].http.paths: Required value",
        "spec.rules[1].http.paths[0].pathType: Required value: pathType must be specified",
      ],
    },
    {
      name: "backends",
      change: { "spec.defaultBackend": {}, "spec.rules[0].http.paths[0].backend": { service: { name: "", port: {} } } },
      want: [
        'spec.defaultBackend: Invalid value: "": resource or service backend is required',
        "spec.rules[0].http.paths[0].backend.service.name: Required value",
        "spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
      ],
    },
    {
      name: "a backend of two and a port of two",
      change: {
        "spec.defaultBackend": { service: { name: "_", port: { name: "A", number: 1 } }, resource: { kind: "", name: "" } },
        "spec.rules[0].http.paths[0].backend": { service: { name: "s", port: { name: "A", number: 1 } } },
      },
      want: [
        'spec.defaultBackend: Invalid value: "": cannot set both resource and service backends',
        'spec.rules[0].http.paths[0].backend: Invalid value: "": cannot set both port name & port number',
      ],
    },
    {
      name: "a class by field and annotation",
      change: { "spec.ingressClassName": "a", "metadata.annotations": { "kubernetes.io/ingress.class": "a" } },
      want: ['annotations.kubernetes.io/ingress.class: Invalid value: "a": can not be set when the class field is also set'],
    },
    {
      name: "a class of a bad name",
      change: { "spec.ingressClassName": "_" },
      want: [
        "spec.ingressClassName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "addresses in the status",
      change: { "status.loadBalancer.ingress": [{ ip: "x" }, { hostname: "_" }] },
      before: {},
      status: true,
      want: [
        'status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address',
        "status.loadBalancer.ingress[1].hostname: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "an address of IPv6 for a name in the status",
      change: { "status.loadBalancer.ingress": [{ hostname: "fd00::1" }] },
      before: {},
      status: true,
      want: [
        "status.loadBalancer.ingress[0].hostname: Invalid value: \"fd00::1\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'status.loadBalancer.ingress[0].hostname: Invalid value: "fd00::1": must be a DNS name, not an IP address',
      ],
    },
    {
      name: "an empty class, and a port of a name and of a number below 1",
      change: {
        "spec.ingressClassName": "",
        "spec.defaultBackend": { service: { name: "s", port: { name: "a", number: -1 } } },
      },
      want: [
        'spec.defaultBackend: Invalid value: "": cannot set both port name & port number',
        "spec.ingressClassName: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "a secret and a wildcard's paths that were wrong before",
      before: {
        "spec.tls": [{ secretName: "_" }],
        "spec.rules[1]": { host: "*.a.b", http: { paths: [] } },
      },
      change: { "spec.rules[0].host": "b.c" },
      want: [],
    },
    {
      name: "wrong paths of a plain host beside a wildcard's that were wrong before",
      before: { "spec.rules[1]": { host: "*.a.b", http: { paths: [] } } },
      change: { "spec.rules[0].http.paths": [] },
      want: ["spec.rules[0].http.paths: Required value"],
    },
    {
      name: "a wildcard's paths that are wrong now",
      before: {},
      change: { "spec.rules[1]": { host: "*.a.b", http: { paths: [] } } },
      want: ["spec.rules[1].http.paths: Required value"],
    },
    {
      name: "paths that end or begin in a strange way",
      change: {
        "spec.rules": [
          {
            http: {
              paths: [
                { path: "/a/..", pathType: "Exact", backend: { service: { name: "s", port: { number: 80 } } } },
                { path: "a", pathType: "ImplementationSpecific", backend: { service: { name: "s", port: { number: 80 } } } },
              ],
            },
          },
        ],
      },
      want: [
        "spec.rules[0].http.paths[0].path: Invalid value: \"/a/..\": cannot end with '/..'",
        'spec.rules[0].http.paths[1].path: Invalid value: "a": must be an absolute path',
      ],
    },
    {
      name: "strange names of a service and its port",
      change: { "spec.defaultBackend": { service: { name: "1a", port: { name: "a_b" } } } },
      want: [
        "spec.defaultBackend.service.name: Invalid value: \"1a\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        'spec.defaultBackend.service.port.name: Invalid value: "a_b": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      ],
    },
    {
      name: "a port of an upper case letter, for two reasons",
      change: { "spec.defaultBackend": { service: { name: "s", port: { name: "A" } } } },
      want: [
        'spec.defaultBackend.service.port.name: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
        'spec.defaultBackend.service.port.name: Invalid value: "A": must contain at least one letter (a-z)',
      ],
    },
    {
      name: "an address for a name in the status",
      status: true,
      before: {},
      change: { "status.loadBalancer.ingress": [{ hostname: "1.1.1.1" }] },
      want: ['status.loadBalancer.ingress[0].hostname: Invalid value: "1.1.1.1": must be a DNS name, not an IP address'],
    },
    {
      name: "a secret and ports that are none, a resource of no kind",
      change: {
        "spec.tls": [{ secretName: "a b" }],
        "spec.defaultBackend": { resource: {} },
        "spec.rules": [
          { http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "a", port: { number: 70000 } } } }] } },
        ],
      },
      want: [
        "spec.defaultBackend.resource.kind: Required value: kind is required",
        "spec.defaultBackend.resource.name: Required value: name is required",
        "spec.rules[0].http.paths[0].backend.service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive",
        "spec.tls[0].secretName: Invalid value: \"a b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
  ],
);
