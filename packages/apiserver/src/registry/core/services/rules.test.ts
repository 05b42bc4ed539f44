import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import { testKindRules } from "../../../testing/kind-rules.ts";

const rangesKey = "service.beta.kubernetes.io/load-balancer-source-ranges";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const balanced = {
  ...{ "spec.type": "LoadBalancer", "spec.clusterIP": "10.96.0.8", "spec.clusterIPs": ["10.96.0.8"] },
  ...{ "spec.ipFamilies": ["IPv4"], "spec.ipFamilyPolicy": "SingleStack" },
};
const mixedPorts = [
  { name: "a", port: 53, protocol: "TCP", targetPort: 53 },
  { name: "b", port: 53, protocol: "UDP", targetPort: 53 },
];
const mixed = { "spec.type": "LoadBalancer", "spec.ports": mixedPorts };

testKindRules("services", { spec: { ports: [{ port: 80 }], selector: { a: "b" } } }, [
  { name: "a service", change: {}, want: [] },
  { name: "no ports", change: { "spec.ports": [] }, want: ["spec.ports: Required value"] },
  {
    name: "ports",
    change: {
      "spec.ports": [
        { port: 0 },
        { port: 80, name: "A", protocol: "HTTP", targetPort: "http_x" },
        { port: 80, name: "b" },
        { port: 80, name: "b" },
      ],
    },
    want: [
      "spec.ports[0].name: Required value",
      "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
      "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
      "spec.ports[1].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      'spec.ports[1].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
      'spec.ports[1].targetPort: Invalid value: "http_x": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      'spec.ports[3].name: Duplicate value: "b"',
      'spec.ports[3]: Duplicate value: core.ServicePort{Name:"", Protocol:"TCP", AppProtocol:(*string)(nil), Port:80, TargetPort:intstr.IntOrString{Type:0, IntVal:0, StrVal:""}, NodePort:0}',
    ],
  },
  {
    name: "a port of an application",
    change: { "spec.ports": [{ port: 80, appProtocol: "a b" }] },
    want: [
      "spec.ports[0].appProtocol: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "an empty protocol of an application",
    change: { "spec.ports": [{ port: 80, appProtocol: "" }] },
    want: [
      'spec.ports[0].appProtocol: Invalid value: "": name part must be non-empty',
      "spec.ports[0].appProtocol: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "a load balancer of two protocols",
    change: mixed,
    want: [
      `spec.ports: Invalid value: ${goStruct("[]core/v1.ServicePort", mixedPorts).text}: may not contain more than 1 protocol when type is 'LoadBalancer'`,
    ],
  },
  {
    name: "a load balancer of two protocols where they may mix",
    change: mixed,
    gates: { MixedProtocolLBService: true },
    want: [],
  },
  { name: "two protocols that were there before", before: mixed, change: { "metadata.labels": { a: "b" } }, want: [] },
  { name: "two protocols without a load balancer", change: { "spec.ports": mixedPorts }, want: [] },
  {
    name: "a type and an affinity",
    change: { "spec.type": "Own", "spec.sessionAffinity": "Own" },
    want: [
      'spec.sessionAffinity: Unsupported value: "Own": supported values: "ClientIP", "None"',
      'spec.type: Unsupported value: "Own": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
    ],
  },
  {
    name: "an affinity of no time",
    change: { "spec.sessionAffinity": "ClientIP", "spec.sessionAffinityConfig": { clientIP: { timeoutSeconds: 0 } } },
    want: ["spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400"],
  },
  {
    name: "no affinity with a configuration",
    change: { "spec.sessionAffinityConfig": { clientIP: { timeoutSeconds: 5 } } },
    want: [],
  },
  {
    name: "a selector",
    change: { "spec.selector": { "a b": "c" } },
    want: [
      "spec.selector: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "addresses",
    change: { "spec.externalIPs": ["x", "127.0.0.1"] },
    want: [
      'spec.externalIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      'spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
    ],
  },
  {
    name: "an invalid address of the service, which is the only error reported",
    change: { "spec.externalIPs": ["x"], "spec.clusterIP": "y" },
    want: ['spec.clusterIPs[0]: Invalid value: "y": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  },
  {
    name: "a name outside without one",
    change: { "spec.type": "ExternalName", "spec.ports": undefined },
    want: ["spec.externalName: Required value"],
  },
  {
    name: "a name outside with an address",
    change: { "spec.type": "ExternalName", "spec.externalName": "a.b", "spec.clusterIP": "10.96.0.1" },
    want: ["spec.clusterIPs: Forbidden: may not be set for ExternalName services"],
  },
  {
    name: "node ports of a cluster's own",
    change: { "spec.ports": [{ port: 80, nodePort: 30000 }] },
    want: ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
  },
  {
    name: "a node port twice",
    change: {
      "spec.type": "NodePort",
      "spec.ports": [
        { name: "a", port: 80, nodePort: 30000 },
        { name: "b", port: 81, nodePort: 30000 },
      ],
    },
    want: ["spec.ports[1].nodePort: Duplicate value: 30000"],
  },
  {
    name: "a balancer's ranges",
    change: { "spec.type": "LoadBalancer", "spec.loadBalancerSourceRanges": ["x"] },
    want: [
      'spec.LoadBalancerSourceRanges: Invalid value: "[x]": must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24 ',
    ],
  },
  {
    name: "a balancer's ranges of another type",
    change: { "spec.loadBalancerSourceRanges": ["10.0.0.0/8"] },
    want: ["spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"],
  },
  {
    name: "a balancer's class of another type",
    change: { "spec.loadBalancerClass": "a.com/x" },
    want: ["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
  },
  {
    name: "a traffic policy",
    change: { "spec.type": "NodePort", "spec.externalTrafficPolicy": "Near", "spec.internalTrafficPolicy": "Near" },
    want: [
      'spec.externalTrafficPolicy: Invalid value: "Near": ExternalTrafficPolicy must be empty, Cluster or Local',
      'spec.internalTrafficPolicy: Unsupported value: "Near": supported values: "Cluster", "Local"',
    ],
  },
  {
    name: "a traffic policy of a cluster's own",
    change: { "spec.externalTrafficPolicy": "Local" },
    want: [
      'spec.externalTrafficPolicy: Invalid value: "Local": ExternalTrafficPolicy can only be set on NodePort and LoadBalancer service',
    ],
  },
  {
    name: "a health port of all nodes",
    change: { "spec.type": "NodePort", "spec.healthCheckNodePort": 30000 },
    want: [
      "spec.healthCheckNodePort: Invalid value: 30000: HealthCheckNodePort can only be set on LoadBalancer service with ExternalTrafficPolicy=Local",
    ],
  },
  {
    name: "another address",
    change: { "spec.clusterIP": "10.96.0.9", "spec.clusterIPs": ["10.96.0.9"] },
    before: {
      "spec.clusterIP": "10.96.0.8",
      "spec.clusterIPs": ["10.96.0.8"],
      "spec.ipFamilies": ["IPv4"],
      "spec.ipFamilyPolicy": "SingleStack",
    },
    want: ['spec.clusterIPs[0]: Invalid value: []string{"10.96.0.9"}: may not change once set'],
  },
  {
    name: "a balancer's address in the status",
    change: { "status.loadBalancer.ingress": [{ ip: "x" }, { hostname: "1.1.1.1" }, { hostname: "_" }] },
    before: {
      "spec.type": "LoadBalancer",
      "spec.clusterIP": "10.96.0.8",
      "spec.clusterIPs": ["10.96.0.8"],
      "spec.ipFamilies": ["IPv4"],
      "spec.ipFamilyPolicy": "SingleStack",
    },
    status: true,
    want: [
      'status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address',
      'status.loadBalancer.ingress[1].hostname: Invalid value: "1.1.1.1": must be a DNS name, not an IP address',
      "status.loadBalancer.ingress[2].hostname: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "an address that is not the first",
    change: { "spec.clusterIP": "10.96.0.8", "spec.clusterIPs": ["10.96.0.9"] },
    want: ['spec.clusterIPs: Invalid value: []string{"10.96.0.9"}: first value must match `clusterIP`'],
  },
  {
    name: "an address without the list",
    change: { "spec.clusterIP": "10.96.0.8" },
    before: { "spec.clusterIP": "10.96.0.8" },
    want: ["spec.clusterIPs: Required value"],
  },
  {
    name: "addresses but no address",
    change: { "spec.clusterIPs": ["10.96.0.9"] },
    before: { "spec.clusterIPs": ["10.96.0.9"] },
    want: ['spec.clusterIPs: Invalid value: []string{"10.96.0.9"}: must be empty when `clusterIP` is not specified'],
  },
  {
    name: "families",
    change: { "spec.ipFamilies": ["IPv5", "IPv4", "IPv4"], "spec.ipFamilyPolicy": "Any" },
    want: [
      'spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"',
      'spec.ipFamilies[2]: Duplicate value: "IPv4"',
      'spec.ipFamilyPolicy: Unsupported value: "Any": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"',
    ],
  },
  {
    name: "three addresses",
    change: { "spec.clusterIP": "10.96.0.8", "spec.clusterIPs": ["10.96.0.8", "fd00::8", "10.96.0.9"] },
    want: ['spec.clusterIPs: Invalid value: []string{"10.96.0.8", "fd00::8", "10.96.0.9"}: may only hold up to 2 values'],
  },
  {
    name: "two addresses of one family",
    change: { "spec.clusterIP": "10.96.0.8", "spec.clusterIPs": ["10.96.0.8", "10.96.0.9"] },
    want: [
      'spec.clusterIPs: Invalid value: []string{"10.96.0.8", "10.96.0.9"}: may specify no more than one IP for each IP family',
    ],
  },
  {
    name: "an address of another family",
    change: { "spec.clusterIP": "10.96.0.8", "spec.clusterIPs": ["10.96.0.8"], "spec.ipFamilies": ["IPv6"] },
    want: ['spec.clusterIPs[0]: Invalid value: "10.96.0.8": expected an IPv6 value as indicated by `ipFamilies[0]`'],
  },
  {
    name: "no address and one",
    change: { "spec.clusterIP": "None", "spec.clusterIPs": ["None", "10.96.0.8"] },
    want: ['spec.clusterIPs: Invalid value: []string{"None", "10.96.0.8"}: \'None\' must be the first and only value'],
  },
  {
    name: "no address of a node port",
    change: { "spec.type": "NodePort", "spec.clusterIP": "None", "spec.clusterIPs": ["None"] },
    want: ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
  },
  {
    name: "the kubelet's port of a balancer",
    change: { "spec.type": "LoadBalancer", "spec.ports": [{ port: 10250 }] },
    want: ["spec.ports[0]: Invalid value: 10250: may not expose port 10250 externally since it is used by kubelet"],
  },
  {
    name: "a name outside with families",
    change: {
      "spec.type": "ExternalName",
      "spec.externalName": "_",
      "spec.ipFamilies": ["IPv4"],
      "spec.ipFamilyPolicy": "SingleStack",
    },
    want: [
      "spec.ipFamilies: Forbidden: may not be set for ExternalName services",
      "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services",
      "spec.externalName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "node ports of a balancer for what is none",
    change: { "spec.allocateLoadBalancerNodePorts": true },
    want: ["spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'"],
  },
  {
    name: "a strange class of a balancer",
    change: { "spec.type": "LoadBalancer", "spec.loadBalancerClass": "a b" },
    want: [
      "spec.loadBalancerClass: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "a health port below nothing",
    change: { "spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local", "spec.healthCheckNodePort": -1 },
    want: ["spec.healthCheckNodePort: Invalid value: -1: HealthCheckNodePort must be not less than 0"],
  },
  {
    name: "another class of a balancer",
    before: {
      "spec.clusterIP": "10.96.0.8",
      "spec.clusterIPs": ["10.96.0.8"],
      "spec.ipFamilies": ["IPv4"],
      "spec.ipFamilyPolicy": "SingleStack",
      "spec.type": "LoadBalancer",
      "spec.loadBalancerClass": "a.com/x",
    },
    change: { "spec.loadBalancerClass": "a.com/y" },
    want: ['spec.loadBalancerClass: Invalid value: "a.com/y": may not change once set'],
  },
  {
    name: "another health port",
    before: {
      "spec.clusterIP": "10.96.0.8",
      "spec.clusterIPs": ["10.96.0.8"],
      "spec.ipFamilies": ["IPv4"],
      "spec.ipFamilyPolicy": "SingleStack",
      "spec.type": "LoadBalancer",
      "spec.externalTrafficPolicy": "Local",
      "spec.healthCheckNodePort": 30000,
    },
    change: { "spec.healthCheckNodePort": 30001 },
    want: [
      "spec.healthCheckNodePort: Invalid value: 30001: cannot change healthCheckNodePort on loadBalancer service with externalTraffic=Local during update",
    ],
  },
  {
    name: "another family",
    before: {
      "spec.clusterIP": "10.96.0.8",
      "spec.clusterIPs": ["10.96.0.8"],
      "spec.ipFamilies": ["IPv4"],
      "spec.ipFamilyPolicy": "SingleStack",
    },
    change: { "spec.clusterIP": "fd00::8", "spec.clusterIPs": ["fd00::8"], "spec.ipFamilies": ["IPv6"] },
    want: ['spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
  },
  {
    name: "another first address with a second",
    before: {
      "spec.clusterIP": "10.96.0.8",
      "spec.clusterIPs": ["10.96.0.8"],
      "spec.ipFamilies": ["IPv4"],
      "spec.ipFamilyPolicy": "SingleStack",
    },
    change: {
      "spec.clusterIP": "fd00::8",
      "spec.clusterIPs": ["fd00::8", "10.96.0.8"],
      "spec.ipFamilies": ["IPv6", "IPv4"],
      "spec.ipFamilyPolicy": "PreferDualStack",
    },
    want: ['spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
  },
  {
    name: "one address less in two stacks",
    before: {
      "spec.clusterIP": "10.96.0.8",
      "spec.clusterIPs": ["10.96.0.8", "fd00::8"],
      "spec.ipFamilies": ["IPv4", "IPv6"],
      "spec.ipFamilyPolicy": "PreferDualStack",
    },
    change: { "spec.clusterIPs": ["10.96.0.8"], "spec.ipFamilies": ["IPv4"] },
    want: [
      "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be 'SingleStack' to release the secondary cluster IP",
      "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be 'SingleStack' to release the secondary IP family",
    ],
  },
  {
    name: "one family less in two stacks, with both addresses",
    before: {
      "spec.clusterIP": "10.96.0.8",
      "spec.clusterIPs": ["10.96.0.8", "fd00::8"],
      "spec.ipFamilies": ["IPv4", "IPv6"],
      "spec.ipFamilyPolicy": "PreferDualStack",
    },
    change: { "spec.ipFamilies": ["IPv4"] },
    want: [
      "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be 'SingleStack' to release the secondary IP family",
      'spec.clusterIPs[1]: Invalid value: []string{"10.96.0.8", "fd00::8"}: IPv6 is not configured on this cluster',
    ],
  },
  {
    name: "a port of health checks below zero, which is not needed either",
    change: { "spec.type": "NodePort", "spec.healthCheckNodePort": -1 },
    want: [
      "spec.healthCheckNodePort: Invalid value: -1: HealthCheckNodePort must be not less than 0",
      "spec.healthCheckNodePort: Invalid value: -1: HealthCheckNodePort can only be set on LoadBalancer service with ExternalTrafficPolicy=Local",
    ],
  },
  ...["RequireDualStack", "PreferDualStack", "SingleStack"].map((policy) => ({
    name: `a name outside with the policy ${policy}`,
    change: { "spec.type": "ExternalName", "spec.externalName": "a.b", "spec.ipFamilyPolicy": policy },
    want: ["spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services"],
  })),
  {
    name: "no address of a family that the cluster lacks, with a selector",
    change: { "spec.clusterIP": "None", "spec.selector": { a: "b" }, "spec.ipFamilies": ["IPv6"] },
    want: ['spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
  },
  {
    name: "no address of a family that the cluster lacks, without a selector",
    change: { "spec.clusterIP": "None", "spec.selector": {}, "spec.ipFamilies": ["IPv6"] },
    want: [],
  },
  {
    name: "no affinity, with a time",
    undefaulted: true,
    change: {
      "spec.type": "ClusterIP",
      "spec.sessionAffinity": "None",
      "spec.sessionAffinityConfig": {},
      "spec.ports[0].protocol": "TCP",
      "spec.ports[0].targetPort": 80,
    },
    want: [
      "spec.sessionAffinityConfig: Forbidden: must not be set when session affinity is None",
      "spec.internalTrafficPolicy: Required value",
    ],
  },
  {
    name: "an affinity of which nothing is said, and no traffic policy",
    undefaulted: true,
    change: {
      "spec.type": "LoadBalancer",
      "spec.sessionAffinity": "ClientIP",
      "spec.ports[0].protocol": "TCP",
      "spec.ports[0].targetPort": 80,
    },
    want: [
      "spec.sessionAffinityConfig: Required value: when session affinity type is ClientIP",
      "allocateLoadBalancerNodePorts: Required value",
      "spec.internalTrafficPolicy: Required value",
    ],
  },
  {
    name: "an affinity of no clients",
    undefaulted: true,
    change: {
      "spec.type": "ClusterIP",
      "spec.internalTrafficPolicy": "Cluster",
      "spec.sessionAffinity": "ClientIP",
      "spec.sessionAffinityConfig": {},
      "spec.ports[0].protocol": "TCP",
      "spec.ports[0].targetPort": 80,
    },
    want: ["spec.sessionAffinityConfig.clientIP: Required value: when session affinity type is ClientIP"],
  },
  {
    name: "an affinity without time",
    undefaulted: true,
    change: {
      "spec.type": "ClusterIP",
      "spec.internalTrafficPolicy": "Cluster",
      "spec.sessionAffinity": "ClientIP",
      "spec.sessionAffinityConfig": { clientIP: {} },
      "spec.ports[0].protocol": "TCP",
      "spec.ports[0].targetPort": 80,
    },
    want: ["spec.sessionAffinityConfig.clientIP.timeoutSeconds: Required value: when session affinity type is ClientIP"],
  },
  {
    name: "a selector, also later",
    before: {},
    change: { "spec.selector": { "a b": "c" } },
    want: [
      "spec.selector: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "addresses that are none, as before",
    before: { "spec.ipFamilyPolicy": "PreferDualStack", "spec.clusterIP": "x", "spec.clusterIPs": ["x"] },
    change: {},
    want: ['spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  },
  {
    name: "a headless service without ports",
    change: { "spec.clusterIP": "None", "spec.clusterIPs": ["None"], "spec.ports": [] },
    want: [],
  },
  {
    name: "a name outside that ends with a dot, without ports",
    change: { "spec.type": "ExternalName", "spec.ports": [], "spec.externalName": "a.b." },
    want: [],
  },
  {
    name: "a name outside that ends with two dots",
    change: { "spec.type": "ExternalName", "spec.externalName": "a.b.." },
    want: [`spec.externalName: Invalid value: "a.b.": ${subdomainText}`],
  },
  {
    name: "a name outside with a class, node ports and a policy for traffic",
    change: {
      ...{ "spec.type": "ExternalName", "spec.externalName": "a.b", "spec.externalTrafficPolicy": "Cluster" },
      ...{ "spec.internalTrafficPolicy": "Local", "spec.allocateLoadBalancerNodePorts": false },
    },
    want: [
      "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'",
      'spec.externalTrafficPolicy: Invalid value: "Cluster": ExternalTrafficPolicy can only be set on NodePort and LoadBalancer service',
    ],
  },
  {
    name: "two ports of which one has no name",
    change: { "spec.ports": [{ port: 80, name: "a" }, { port: 81 }] },
    want: ["spec.ports[1].name: Required value"],
  },
  {
    name: "one number of three protocols, two node ports of a load balancer and a port by name",
    change: {
      "spec.type": "NodePort",
      "spec.ports": [
        { port: 80, name: "a", protocol: "TCP", nodePort: 30_080, targetPort: "http" },
        { port: 80, name: "b", protocol: "UDP", nodePort: 30_080, appProtocol: "a.b/c" },
        { port: 80, name: "c", protocol: "SCTP", nodePort: 30_081 },
      ],
    },
    want: [],
  },
  {
    name: "one node port of one protocol twice, beside another",
    change: {
      "spec.type": "LoadBalancer",
      "spec.ports": [
        { port: 80, name: "a", nodePort: 30_080 },
        { port: 81, name: "b", nodePort: 30_081 },
        { port: 82, name: "c", nodePort: 30_081 },
      ],
    },
    want: ["spec.ports[2].nodePort: Duplicate value: 30081"],
  },
  {
    name: "ranges of a load balancer with spaces around them, and a policy",
    change: {
      "spec.type": "LoadBalancer",
      "spec.loadBalancerSourceRanges": [" 10.0.0.0/8 ", "fd00::/8"],
      "spec.externalTrafficPolicy": "Local",
      "spec.healthCheckNodePort": 30_000,
      "metadata.annotations": { [rangesKey]: "x" },
    },
    want: [],
  },
  ...["", "  ", "10.0.0.0/8, 192.168.0.0/16"].map((ranges) => ({
    name: `ranges of a load balancer in the annotation: ${JSON.stringify(ranges)}`,
    change: { "spec.type": "LoadBalancer", "metadata.annotations": { [rangesKey]: ranges } },
    want: [],
  })),
  {
    name: "ranges in the annotation of which the second is none",
    change: { "spec.type": "LoadBalancer", "metadata.annotations": { [rangesKey]: "10.0.0.0/8,x" } },
    want: [
      `metadata.annotations[${rangesKey}]: Invalid value: "10.0.0.0/8,x": must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24 `,
    ],
  },
  {
    name: "an empty annotation of ranges where nothing is balanced",
    change: { "metadata.annotations": { [rangesKey]: "" } },
    want: [`metadata.annotations[${rangesKey}]: Forbidden: may only be used when \`type\` is 'LoadBalancer'`],
  },
  {
    name: "a policy for traffic from outside where none comes in",
    change: { "spec.externalTrafficPolicy": "Cluster" },
    want: [
      'spec.externalTrafficPolicy: Invalid value: "Cluster": ExternalTrafficPolicy can only be set on NodePort and LoadBalancer service',
    ],
  },
  {
    name: "a port for health checks where all nodes take part",
    change: { "spec.type": "LoadBalancer", "spec.healthCheckNodePort": 30_000 },
    want: [
      "spec.healthCheckNodePort: Invalid value: 30000: HealthCheckNodePort can only be set on LoadBalancer service with ExternalTrafficPolicy=Local",
    ],
  },
  {
    name: "a class of a load balancer that had none",
    before: balanced,
    change: { "spec.loadBalancerClass": "a.com/x" },
    want: ['spec.loadBalancerClass: Invalid value: "a.com/x": may not change once set'],
  },
  {
    name: "no class of a load balancer that had one",
    before: { ...balanced, "spec.loadBalancerClass": "a.com/x" },
    change: { "spec.loadBalancerClass": undefined },
    want: ['spec.loadBalancerClass: Invalid value: "null": may not change once set'],
  },
  {
    name: "a class of what becomes a load balancer",
    before: { ...balanced, "spec.type": "NodePort" },
    change: { "spec.type": "LoadBalancer", "spec.loadBalancerClass": "a.com/x", "spec.allocateLoadBalancerNodePorts": false },
    want: [],
  },
  {
    name: "a first port for health checks of a load balancer that stays local",
    before: { ...balanced, "spec.externalTrafficPolicy": "Local" },
    change: { "spec.healthCheckNodePort": 30_001 },
    want: [
      "spec.healthCheckNodePort: Invalid value: 30001: cannot change healthCheckNodePort on loadBalancer service with externalTraffic=Local during update",
    ],
  },
  {
    name: "a first port for health checks of a load balancer that becomes local",
    before: balanced,
    change: { "spec.externalTrafficPolicy": "Local", "spec.healthCheckNodePort": 30_001 },
    want: [],
  },
  {
    name: "two protocols of a load balancer that had one",
    before: balanced,
    change: { "spec.ports": mixedPorts },
    want: [
      `spec.ports: Invalid value: ${goStruct("[]core/v1.ServicePort", mixedPorts).text}: may not contain more than 1 protocol when type is 'LoadBalancer'`,
    ],
  },
  { name: "two protocols of node ports", change: { ...mixed, "spec.type": "NodePort" }, want: [] },
  {
    name: "addresses from outside of which the second is no one's",
    change: { "spec.externalIPs": ["192.0.2.1", "0.0.0.0", "fd00::1", "fe80::1"] },
    want: [
      'spec.externalIPs[1]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)',
      'spec.externalIPs[3]: Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
    ],
  },
]);
