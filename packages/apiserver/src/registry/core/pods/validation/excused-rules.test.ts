/** What a stored pod or template excuses in an update: features that it uses already, of gates that are off. */
import { testKindRules } from "../../../../testing/kind-rules.ts";

const small = { spec: { containers: [{ name: "c", image: "i" }] } };
const relabelled = { "metadata.labels": { a: "b" } };
const pages = (side: string): object => ({
  name: "A",
  valueFrom: { resourceFieldRef: { containerName: "c", resource: `${side}.hugepages-2Mi` } },
});
const file = (resource: string): object => ({ path: "f", resourceFieldRef: { containerName: "c", resource } });
const cost = (value: string): Record<string, unknown> => ({
  "metadata.annotations": { "controller.kubernetes.io/pod-deletion-cost": value },
});
const options = (hostProcess: boolean): object => ({ windowsOptions: { hostProcess } });
const partial = { "hugepages-2Mi": "3Mi", cpu: "1" };
const container = { name: "d", image: "i" };
const searches = (count: number, letter = "a"): string[] => Array.from({ length: count }, (_, i) => `${letter}${i}`);
/** A DNS subdomain of labels of at most 63 characters. */
const subdomain = (length: number): string => "a".repeat(length).replace(/(.{63})a(?=a)/g, "$1.");
const long = [subdomain(127), subdomain(129)];

testKindRules("pods", small, [
  ...["limits", "requests"].map((side) => ({
    name: `${side} of huge pages in a variable, as before`,
    gates: { DownwardAPIHugePages: false },
    before: { "spec.containers[0].env": [pages(side)] },
    change: relabelled,
    want: [],
  })),
  {
    name: "limits of huge pages in a variable",
    gates: { DownwardAPIHugePages: false },
    change: { "spec.containers[0].env": [pages("limits")] },
    want: [
      'spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.hugepages-2Mi": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
    ],
  },
  {
    name: "huge pages in a variable of an init container, as before",
    gates: { DownwardAPIHugePages: false },
    before: { "spec.initContainers": [{ ...container, env: [pages("limits")] }] },
    change: relabelled,
    want: [],
  },
  {
    name: "huge pages in the second file of a volume, as before",
    gates: { DownwardAPIHugePages: false },
    before: {
      "spec.volumes": [
        { name: "u", emptyDir: {} },
        { name: "v", downwardAPI: { items: [file("limits.cpu"), { ...file("requests.hugepages-2Mi"), path: "g" }] } },
      ],
    },
    change: relabelled,
    want: [],
  },
  {
    name: "huge pages in a file of a projected volume, as before, which upstream does not look for",
    gates: { DownwardAPIHugePages: false },
    before: {
      "spec.volumes": [{ name: "v", projected: { sources: [{ downwardAPI: { items: [file("limits.hugepages-2Mi")] } }] } }],
    },
    change: relabelled,
    want: [
      'spec.volumes[0].projected.sources[0].downwardAPI.resourceFieldRef.resource: Unsupported value: "limits.hugepages-2Mi": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
    ],
  },
  { name: "another deletion cost that is none", before: cost("much"), change: cost("little"), want: [] },
  {
    name: "a deletion cost that is none, where it was one",
    before: cost("1"),
    change: cost("much"),
    want: Array.from(
      { length: 2 },
      () => 'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "much": must be a 32bit integer',
    ),
  },
  { name: "a deletion cost that is none, without its gate", gates: { PodDeletionCost: false }, change: cost("much"), want: [] },
  {
    name: "a pod of the host, as before",
    gates: { WindowsHostProcessContainers: false },
    before: { "spec.hostNetwork": true, "spec.securityContext": options(true) },
    change: relabelled,
    want: [],
  },
  {
    name: "a container that is not of the host, as before",
    gates: { WindowsHostProcessContainers: false },
    before: { "spec.containers[1]": { ...container, securityContext: options(false) } },
    change: relabelled,
    want: [],
  },
  {
    name: "a container that is not of the host, without the gate",
    gates: { WindowsHostProcessContainers: false },
    change: { "spec.containers[0].securityContext": options(false) },
    want: [
      "spec.containers[0].securityContext.windowsOptions.hostProcess: Forbidden: not allowed when feature gate 'WindowsHostProcessContainers' is not enabled",
    ],
  },
  {
    name: "seven domains to search, as before",
    before: { "spec.dnsConfig.searches": searches(7) },
    change: relabelled,
    want: [],
  },
  {
    name: "33 domains to search, as before",
    before: { "spec.dnsConfig.searches": searches(33) },
    change: relabelled,
    want: [
      `spec.dnsConfig.searches: Invalid value: []string{${searches(33)
        .map((search) => `"${search}"`)
        .join(", ")}}: must not have more than 32 search paths`,
    ],
  },
  { name: "domains of 257 characters, as before", before: { "spec.dnsConfig.searches": long }, change: relabelled, want: [] },
  { name: "an operating system, as before", before: { "spec.os": { name: "linux" } }, change: relabelled, want: [] },
  ...[
    { of: "an overhead", before: { "spec.overhead": partial } },
    { of: "the second container", before: { "spec.containers[1]": { ...container, resources: { limits: partial } } } },
  ].map(({ of, before }) => ({ name: `parts of huge pages of ${of}, as before`, before, change: relabelled, want: [] })),
  {
    name: "requested parts of huge pages without a limit, as before, for the missing limit alone",
    before: { "spec.containers[0].resources": { requests: partial } },
    change: relabelled,
    want: ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"],
  },
  {
    name: "parts of huge pages where there were whole ones",
    before: { "spec.containers[0].resources": { limits: { ...partial, "hugepages-2Mi": "4Mi" } }, "spec.overhead": { cpu: "1" } },
    change: { "spec.overhead": partial },
    want: [
      'spec.overhead.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
      "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    ],
  },
]);

const template = { template: { metadata: { labels: { a: "b" } }, ...small } };
const dns = (list: string[]): Record<string, unknown> => ({ "template.spec.dnsConfig": { searches: list } });
const tooMany = (list: string[]): string =>
  `Invalid value: []string{${list.map((search) => `"${search}"`).join(", ")}}: must not have more than 6 search paths`;
const labels = { a: "b" };
for (const { resource, valid, at } of [
  { resource: "podtemplates", valid: template, at: "template" },
  { resource: "replicationcontrollers", valid: { spec: { selector: labels, ...template } }, at: "spec.template" },
  { resource: "deployments.apps", valid: { spec: { selector: { matchLabels: labels }, ...template } }, at: "spec.template" },
  { resource: "replicasets.apps", valid: { spec: { selector: { matchLabels: labels }, ...template } }, at: "spec.template" },
  { resource: "daemonsets.apps", valid: { spec: { selector: { matchLabels: labels }, ...template } }, at: "spec.template" },
]) {
  const below = (changes: object): Record<string, unknown> =>
    Object.fromEntries(Object.entries(changes).map(([path, value]) => [path.replace("template", at), value]));
  testKindRules(resource, valid, [
    {
      name: "seven domains to search in a template whose image changes",
      before: below(dns(searches(7))),
      change: below({ "template.spec.containers[0].image": "j" }),
      want: [],
    },
    {
      name: "seven other domains to search in a template",
      before: below(dns(searches(7))),
      change: below(dns(searches(7, "b"))),
      want: [`${at}.spec.dnsConfig.searches: ${tooMany(searches(7, "b"))}`],
    },
  ]);
}
