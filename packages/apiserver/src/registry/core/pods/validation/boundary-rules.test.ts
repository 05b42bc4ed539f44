/** Values of pods that are just taken, and those next to them that are refused. */
import { testKindRules } from "../../../../testing/kind-rules.ts";

const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const small = { spec: { containers: [{ name: "c", image: "i" }] } };

testKindRules("pods", small, [
  {
    name: "names with dots of an account, a node, a priority class and a runtime class",
    change: {
      "spec.serviceAccountName": "a.b",
      "spec.nodeName": "a.b",
      "spec.priorityClassName": "a.b",
      "spec.runtimeClassName": "a.b",
    },
    want: [],
  },
  {
    name: "a subdomain with a dot beside a host name",
    change: { "spec.hostname": "a", "spec.subdomain": "a.b" },
    want: [`spec.subdomain: Invalid value: "a.b": ${labelText}`],
  },
  {
    name: "domains to search that end with a dot, but not with two",
    change: { "spec.dnsConfig": { searches: ["a.b.", "a.b.."] } },
    want: [`spec.dnsConfig.searches[1]: Invalid value: "a.b.": ${subdomainText}`],
  },
  {
    name: "a name server with policy None",
    change: { "spec.dnsPolicy": "None", "spec.dnsConfig": { nameservers: ["fd00::1"] } },
    want: [],
  },
  {
    name: "a second DNS option and a second alias's second name that are none",
    change: {
      "spec.dnsConfig": { options: [{ name: "ndots", value: "2" }, { value: "x" }] },
      "spec.hostAliases": [
        { ip: "10.0.0.1", hostnames: ["a"] },
        { ip: "10.0.0.2", hostnames: ["a.b", "_"] },
      ],
    },
    want: [
      "spec.dnsConfig.options[1]: Required value: must not be empty",
      `spec.hostAliases.hostnames: Invalid value: "_": ${subdomainText}`,
    ],
  },
  {
    name: "a token of an account whose name is empty",
    change: {
      "spec.serviceAccountName": "",
      "spec.volumes": [
        { name: "v", projected: { sources: [{ secret: { name: "s" } }, { serviceAccountToken: { path: "t" } }] } },
      ],
    },
    want: [
      "spec.volumes[0].projected.sources[1].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
    ],
  },
  {
    name: "deletion costs of minus nothing",
    change: { "metadata.annotations": { "controller.kubernetes.io/pod-deletion-cost": "-0" } },
    want: [],
  },
  ...["", "-", "00", "0x1", "1.0"].map((cost) => ({
    name: `a deletion cost of ${JSON.stringify(cost)}`,
    change: { "metadata.annotations": { "controller.kubernetes.io/pod-deletion-cost": cost } },
    want: [`metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "${cost}": must be a 32bit integer`],
  })),
  {
    name: "a runtime class without a name",
    change: { "spec.runtimeClassName": "" },
    want: [`spec.runtimeClassName: Invalid value: "": ${subdomainText}`],
  },
  {
    name: "an empty list of name servers with policy None",
    change: { "spec.dnsPolicy": "None", "spec.dnsConfig": { nameservers: [] } },
    want: ["spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"],
  },
  {
    name: "a mirror of an empty node",
    change: { "metadata.annotations": { "kubernetes.io/config.mirror": "x" }, "spec.nodeName": "" },
    want: [
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
    ],
  },
]);

testKindRules("podtemplates", { template: small }, [
  {
    name: "a claim that a pod without a name would make for an ephemeral volume",
    change: {
      "template.spec.volumes": [
        {
          name: "v",
          ephemeral: {
            volumeClaimTemplate: {
              spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1" } } },
            },
          },
        },
        { name: "w", persistentVolumeClaim: { claimName: "-v" } },
      ],
    },
    want: [],
  },
]);
