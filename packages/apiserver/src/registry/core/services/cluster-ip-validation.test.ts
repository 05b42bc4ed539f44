import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { testRefusals } from "../../../testing/refusals.ts";
import { validateClusterIps, validateClusterIpsUpdate } from "./cluster-ip-validation.ts";
import { defaultIpFamilies } from "./ip-families.ts";

const aService = (spec: object): Service => ({ metadata: { name: "s" }, spec: { type: "ClusterIP", ...spec } });
const [four, six, other] = ["10.0.0.1", "fd00::1", "10.0.0.2"];
const both = { clusterIPs: [four, six], ipFamilies: ["IPv4", "IPv6"], ipFamilyPolicy: "RequireDualStack" };
const one = { clusterIPs: [four], ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" };
const ipv4 = '[]core.IPFamily{"IPv4"}';

testRefusals<{ next: object; current: object }>(
  ({ next, current }) => validateClusterIpsUpdate(aService(next), aService(current)),
  [
    { name: "a second stack", input: { current: one, next: both }, want: [] },
    { name: "the second stack given back", input: { current: both, next: one }, want: [] },
    {
      name: "another address and family",
      input: { current: one, next: { ...one, clusterIPs: [other], ipFamilies: ["IPv6"] } },
      want: [
        `spec.clusterIPs[0]: Invalid value: []string{"${other}"}: may not change once set`,
        'spec.ipFamilies[0]: Invalid value: []core.IPFamily{"IPv6"}: may not change once set',
      ],
    },
    {
      name: "a second stack before the first one",
      input: { current: one, next: { ...both, clusterIPs: [six, four], ipFamilies: ["IPv6", "IPv4"] } },
      want: [
        `spec.clusterIPs[0]: Invalid value: []string{"${six}", "${four}"}: may not change once set`,
        `spec.ipFamilies[0]: Invalid value: []string{"${six}", "${four}"}: may not change once set`,
      ],
    },
    {
      name: "the first stack given back, without a word on it",
      input: { current: both, next: { ...both, clusterIPs: [six], ipFamilies: ["IPv6"] } },
      want: [
        `spec.clusterIPs[0]: Invalid value: []string{"${six}"}: may not change once set`,
        "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be set to 'SingleStack' when releasing the secondary clusterIP",
        `spec.ipFamilies[0]: Invalid value: []string{"${six}"}: may not change once set`,
        "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be set to 'SingleStack' when releasing the secondary ipFamily",
      ],
    },
    {
      name: "no addresses any more",
      input: { current: both, next: { ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" } },
      want: [
        "spec.clusterIPs[0]: Invalid value: []string(nil): primary clusterIP can not be unset",
        `spec.ipFamilies[0]: Invalid value: ${ipv4}: primary ipFamily can not be unset`,
      ],
    },
    { name: "a change to ExternalName", input: { current: one, next: { type: "ExternalName" } }, want: [] },
    {
      name: "a secondary address for a headless service",
      input: { current: { clusterIP: "None", clusterIPs: ["None"] }, next: { clusterIP: "None", clusterIPs: ["None", six] } },
      want: [],
    },
    {
      name: "an address for a headless service",
      input: { current: { clusterIP: "None", clusterIPs: ["None"] }, next: { clusterIP: four, clusterIPs: [four] } },
      want: [`spec.clusterIPs[0]: Invalid value: []string{"${four}"}: may not change once set`],
    },
    {
      name: "no address any more, of other families",
      input: { current: one, next: { clusterIP: "None", clusterIPs: ["None"], ipFamilies: ["IPv6"] } },
      want: ['spec.clusterIPs[0]: Invalid value: []string{"None"}: may not change once set'],
    },
    {
      name: "other families with the first address of a headless service",
      input: {
        current: { clusterIP: "None", clusterIPs: ["None"], ipFamilies: ["IPv4"] },
        next: { clusterIP: six, clusterIPs: [six], ipFamilies: ["IPv6"] },
      },
      want: [`spec.clusterIPs[0]: Invalid value: []string{"${six}"}: may not change once set`],
    },
    {
      name: "other families of a headless service",
      input: {
        current: { clusterIP: "None", clusterIPs: ["None"], ipFamilies: ["IPv4"] },
        next: { clusterIP: "None", clusterIPs: ["None"], ipFamilies: ["IPv6"] },
      },
      want: [],
    },
    {
      name: "another second address and family",
      input: { current: both, next: { ...both, clusterIPs: [four, "fd00::2"], ipFamilies: ["IPv4", "IPv4"] } },
      want: [
        `spec.clusterIPs[1]: Invalid value: []string{"${four}", "fd00::2"}: may not change once set`,
        'spec.ipFamilies[0]: Invalid value: []core.IPFamily{"IPv4", "IPv4"}: may not change once set',
      ],
    },
    {
      name: "the second stack given back, by preference",
      input: { current: both, next: { ...one, ipFamilyPolicy: "PreferDualStack" } },
      want: ["clusterIP", "ipFamily"].map(
        (what) =>
          `spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be set to 'SingleStack' when releasing the secondary ${what}`,
      ),
    },
    {
      name: "another address of what was a name, whatever had been left in it",
      input: { current: { type: "ExternalName", clusterIPs: [other], ipFamilies: ["IPv6"] }, next: one },
      want: [],
    },
    { name: "an address of what had none, being a name", input: { current: { type: "ExternalName" }, next: one }, want: [] },
    { name: "addresses of what had none yet", input: { current: {}, next: both }, want: [] },
  ],
);

const listed = (ips: readonly string[]): string => `[]string{${ips.map((ip) => `"${ip}"`).join(", ")}}`;
testRefusals<object>(
  (spec) => validateClusterIps(aService(spec)),
  [
    { name: "an address of each family", input: { clusterIP: four, ...both }, want: [] },
    { name: "no address", input: { ipFamilies: ["IPv6", "IPv4"], ipFamilyPolicy: "PreferDualStack" }, want: [] },
    {
      name: "a headless service of any families",
      input: { clusterIP: "None", clusterIPs: ["None"], ipFamilies: ["IPv6", "IPv4"], ipFamilyPolicy: "RequireDualStack" },
      want: [],
    },
    { name: "anything of a name outside", input: { type: "ExternalName", clusterIPs: ["x"], ipFamilies: ["IPv5"] }, want: [] },
    {
      name: "an address twice",
      input: { clusterIP: four, clusterIPs: [four, four], ipFamilies: ["IPv4", "IPv6"] },
      want: [`spec.clusterIPs: Invalid value: ${listed([four, four])}: may specify no more than one IP for each IP family`],
    },
    {
      name: "two addresses of one family, of which the second is said to be of the other",
      input: { clusterIP: four, clusterIPs: [four, other], ipFamilies: ["IPv4", "IPv6"] },
      want: [
        `spec.clusterIPs: Invalid value: ${listed([four, other])}: may specify no more than one IP for each IP family`,
        `spec.clusterIPs[1]: Invalid value: "${other}": expected an IPv6 value as indicated by \`ipFamilies[1]\``,
      ],
    },
    {
      name: "a second address that is none, and nothing more of it",
      input: { clusterIP: four, clusterIPs: [four, "x"], ipFamilies: ["IPv6"] },
      want: ['spec.clusterIPs[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    },
    {
      name: "no address as the second one",
      input: { clusterIP: four, clusterIPs: [four, "None"] },
      want: ['spec.clusterIPs[1]: Invalid value: "None": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    },
    {
      name: "three addresses",
      input: { clusterIP: four, clusterIPs: [four, six, other] },
      want: [`spec.clusterIPs: Invalid value: ${listed([four, six, other])}: may only hold up to 2 values`],
    },
    {
      name: "no address, and three",
      input: { clusterIP: "None", clusterIPs: ["None", four, six] },
      want: [
        `spec.clusterIPs: Invalid value: ${listed(["None", four, six])}: 'None' must be the first and only value`,
        `spec.clusterIPs: Invalid value: ${listed(["None", four, six])}: may only hold up to 2 values`,
      ],
    },
  ],
);

testRefusals<{ spec: object; current?: object; available?: ("IPv4" | "IPv6")[] }>(
  ({ spec, current, available = ["IPv4"] }) =>
    defaultIpFamilies(aService({ selector: { a: "b" }, ...spec }), current && aService(current), available),
  [
    {
      name: "two addresses and families for one stack",
      input: { spec: { clusterIP: four, ...both, ipFamilyPolicy: "SingleStack" }, available: ["IPv4", "IPv6"] },
      want: ["cluster IPs", "IP families"].map(
        (what) =>
          `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`,
      ),
    },
    {
      name: "an address of a family that the cluster does not have",
      input: { spec: { clusterIP: six, clusterIPs: [six] } },
      want: [`spec.clusterIPs[0]: Invalid value: []string{"${six}"}: IPv6 is not configured on this cluster`],
    },
    {
      name: "a second address of a family that the cluster does not have",
      input: { spec: { clusterIP: six, clusterIPs: [six, four], ipFamilyPolicy: "PreferDualStack" }, available: ["IPv6"] },
      want: [`spec.clusterIPs[1]: Invalid value: []string{"${six}", "${four}"}: IPv4 is not configured on this cluster`],
    },
    {
      name: "two stacks of a cluster that has one",
      input: { spec: { ipFamilyPolicy: "RequireDualStack", ipFamilies: ["IPv6"] } },
      want: [
        'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
        'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
      ],
    },
    {
      name: "two families in another order with one stack instead of two",
      input: {
        current: { clusterIP: four, ...both },
        spec: { clusterIP: six, clusterIPs: [six, four], ipFamilies: ["IPv6", "IPv4"], ipFamilyPolicy: "SingleStack" },
        available: ["IPv4", "IPv6"],
      },
      want: ["cluster IPs", "IP families"].map(
        (what) =>
          `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`,
      ),
    },
    {
      name: "two other families with one stack instead of two",
      input: {
        current: { clusterIP: four, ...both },
        spec: { clusterIP: four, clusterIPs: [four, six], ipFamilies: ["IPv6", "IPv4"], ipFamilyPolicy: "SingleStack" },
        available: ["IPv4", "IPv6"],
      },
      want: [
        `spec.clusterIPs[0]: Invalid value: "${four}": expected an IPv6 value as indicated by \`ipFamilies[0]\``,
        `spec.clusterIPs[1]: Invalid value: "${six}": expected an IPv4 value as indicated by \`ipFamilies[1]\``,
      ],
    },
    {
      name: "the second stack given back without a word on it",
      input: { current: { clusterIP: four, ...both }, spec: { clusterIP: four, ...one, ipFamilyPolicy: "PreferDualStack" } },
      want: ["cluster IP", "IP family"].map(
        (what) => `spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be 'SingleStack' to release the secondary ${what}`,
      ),
    },
  ],
);

const preferred = { ...one, clusterIP: four, ipFamilyPolicy: "PreferDualStack" };
for (const { name, spec, current, available = ["IPv4", "IPv6"] as const, want } of [
  { name: "a new service", spec: {}, available: ["IPv4"], want: { ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" } },
  {
    name: "a new headless service without a selector",
    spec: { clusterIP: "None", clusterIPs: ["None"], selector: undefined },
    available: ["IPv6"],
    want: { ipFamilies: ["IPv6", "IPv4"], ipFamilyPolicy: "RequireDualStack" },
  },
  { name: "a preference in a cluster of one stack", spec: preferred, available: ["IPv4"], want: { ipFamilies: ["IPv4"] } },
  { name: "a preference in a cluster of two", spec: preferred, want: { ipFamilies: ["IPv4", "IPv6"] } },
  { name: "a preference that there was before", spec: preferred, current: preferred, want: { ipFamilies: ["IPv4"] } },
  {
    name: "a preference that became a requirement",
    spec: { ...preferred, ipFamilyPolicy: "RequireDualStack" },
    current: preferred,
    want: { ipFamilies: ["IPv4", "IPv6"] },
  },
  {
    name: "a preference that there was not before",
    spec: preferred,
    current: { ...preferred, ipFamilyPolicy: "SingleStack" },
    want: { ipFamilies: ["IPv4", "IPv6"] },
  },
  {
    name: "the second stack given back by the policy alone",
    spec: { ...both, clusterIP: four, ipFamilyPolicy: "SingleStack" },
    current: { ...both, clusterIP: four },
    want: { clusterIPs: [four], ipFamilies: ["IPv4"] },
  },
  {
    name: "a preference that is kept with another type",
    spec: { ...preferred, type: "NodePort" },
    current: preferred,
    want: { ipFamilies: ["IPv4", "IPv6"] },
  },
  {
    name: "a requirement that an update does not repeat",
    spec: { ...both, clusterIP: four, ipFamilyPolicy: undefined },
    current: { ...both, clusterIP: four },
    want: { ipFamilyPolicy: "RequireDualStack", ipFamilies: ["IPv4", "IPv6"] },
  },
  {
    name: "a requirement where the second family comes first",
    spec: { ipFamilyPolicy: "RequireDualStack", ipFamilies: ["IPv6"] },
    want: { ipFamilies: ["IPv6", "IPv4"] },
  },
  {
    name: "another first family with one stack instead of two",
    spec: { clusterIP: four, clusterIPs: [four], ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" },
    current: { ...both, clusterIP: four },
    want: { clusterIPs: [four], ipFamilies: ["IPv4"] },
  },
  {
    name: "no addresses and families said by an update of two stacks",
    spec: { clusterIP: four, clusterIPs: [four, six], ipFamilies: [], ipFamilyPolicy: "RequireDualStack" },
    current: { ...both, clusterIP: four },
    want: { ipFamilies: ["IPv4", "IPv6"] },
  },
  {
    name: "a headless service with a selector, in a cluster of one stack",
    spec: { clusterIP: "None", clusterIPs: ["None"] },
    available: ["IPv6"],
    want: { ipFamilies: ["IPv6"], ipFamilyPolicy: "SingleStack" },
  },
  {
    name: "a headless service without a selector that wants one stack",
    spec: { clusterIP: "None", clusterIPs: ["None"], selector: {}, ipFamilyPolicy: "SingleStack" },
    want: { ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" },
  },
  {
    name: "two addresses, the families unsaid",
    spec: { clusterIP: six, clusterIPs: [six, four], ipFamilyPolicy: "RequireDualStack" },
    want: { ipFamilies: ["IPv6", "IPv4"] },
  },
  {
    name: "two addresses, the second family unsaid",
    spec: { clusterIP: six, clusterIPs: [six, four], ipFamilies: ["IPv6"], ipFamilyPolicy: "PreferDualStack" },
    want: { ipFamilies: ["IPv6", "IPv4"] },
  },
] as { name: string; spec: object; current?: object; available?: ("IPv4" | "IPv6")[]; want: object }[]) {
  test(`the families of ${name}`, () => {
    const next = aService({ selector: { a: "b" }, ...structuredClone(spec) });
    assert.deepEqual(defaultIpFamilies(next, current && aService(structuredClone(current)), available), []);
    assert.partialDeepStrictEqual(next.spec, want);
    assert.equal(next.spec?.ipFamilies?.length, (want as { ipFamilies: string[] }).ipFamilies.length);
  });
}
