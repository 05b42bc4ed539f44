import assert from "node:assert/strict";
import { test } from "node:test";
import type { AdmissionAttributes } from "../plugin.ts";
import { persistentVolumeLabel } from "./persistent-volume-label.ts";

const [zoneKey, regionKey] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
const zoned = { [zoneKey]: "b__ a__b", [regionKey]: "r__s" };
const provisioned = { "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs" };
const aws = { awsElasticBlockStore: { volumeID: "vol-1" } };
const ofZones = [
  { key: zoneKey, operator: "In", values: ["a", "b"] },
  { key: regionKey, operator: "In", values: ["r__s"] },
];
const onArm = { key: "kubernetes.io/arch", operator: "In", values: ["arm64"] };
const inZone = { key: zoneKey, operator: "In", values: ["a"] };
const affinityOf = (...terms: object[][]): object => ({
  required: { nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions })) },
});
const unknown = (what: string): string => `persistentvolumes "v" is forbidden: error querying ${what}`;
for (const { name, spec, metadata = {}, want = "", affinity } of [
  { name: "of no cloud", spec: { nfs: {} } },
  { name: "of no cloud, with labels that a user wrote", spec: { nfs: {} }, metadata: { labels: zoned } },
  { name: "of AWS", spec: aws, want: unknown("AWS EBS volume vol-1: unable to build AWS cloud provider for EBS") },
  {
    name: "of AWS with labels that a user wrote",
    spec: aws,
    metadata: { labels: zoned },
    want: unknown("AWS EBS volume vol-1: unable to build AWS cloud provider for EBS"),
  },
  {
    name: "of AWS with half of the labels",
    spec: aws,
    metadata: { labels: { [zoneKey]: "a" }, annotations: provisioned },
    want: unknown("AWS EBS volume vol-1: unable to build AWS cloud provider for EBS"),
  },
  {
    name: "of GCE",
    spec: { gcePersistentDisk: { pdName: "d" } },
    want: unknown("GCE PD volume d: unable to build GCE cloud provider for PD"),
  },
  {
    name: "of Azure",
    spec: { azureDisk: { diskName: "d", diskURI: "u" } },
    want: unknown("AzureDisk volume d: unable to build Azure cloud provider for AzureDisk"),
  },
  {
    name: "of vSphere",
    spec: { vsphereVolume: { volumePath: "[store] d" } },
    want: unknown("vSphere Volume [store] d: unable to build vSphere cloud provider"),
  },
  { name: "of OpenStack, which is not called", spec: { cinder: { volumeID: "v" } } },
  { name: "that is only being made", spec: { gcePersistentDisk: { pdName: "placeholder-for-provisioning" } } },
  {
    name: "that came with its zones",
    spec: aws,
    metadata: { labels: zoned, annotations: provisioned },
    affinity: affinityOf(ofZones),
  },
  {
    name: "without a cloud, with zone labels",
    spec: { nfs: {} },
    metadata: { labels: zoned, annotations: provisioned },
    affinity: affinityOf(ofZones),
  },
  {
    name: "that came with its zones in the old labels",
    spec: aws,
    metadata: {
      labels: { "failure-domain.beta.kubernetes.io/zone": "a", "failure-domain.beta.kubernetes.io/region": "r" },
      annotations: provisioned,
    },
    affinity: affinityOf([
      { key: "failure-domain.beta.kubernetes.io/zone", operator: "In", values: ["a"] },
      { key: "failure-domain.beta.kubernetes.io/region", operator: "In", values: ["r"] },
    ]),
  },
  {
    name: "that came with its zones and other terms",
    spec: { ...aws, nodeAffinity: affinityOf([onArm], []) },
    metadata: { labels: zoned, annotations: provisioned },
    affinity: affinityOf([onArm, ...ofZones], ofZones),
  },
  {
    name: "of which a term speaks of zones already",
    spec: { ...aws, nodeAffinity: affinityOf([onArm], [inZone]) },
    metadata: { labels: zoned, annotations: provisioned },
    affinity: affinityOf([onArm], [inZone]),
  },
  {
    name: "with a zone that has no name",
    spec: aws,
    metadata: { labels: { ...zoned, [zoneKey]: "a__" }, annotations: provisioned },
    want: 'persistentvolumes "v" is forbidden: failed to convert label string for Zone: a__ to a Set',
  },
]) {
  test(`a volume ${name}`, async () => {
    const volume = { metadata: { name: "v", ...metadata }, spec: { ...spec } as { nodeAffinity?: object } };
    const resource = { group: "", version: "v1", resource: "persistentvolumes" };
    const attributes = { operation: "CREATE", resource, subresource: "", name: "v", object: volume } as unknown;
    const refusal = await persistentVolumeLabel()
      .admit?.(attributes as AdmissionAttributes)
      .then(
        () => "",
        (err: Error) => err.message,
      );
    assert.equal(refusal, want);
    assert.deepEqual(volume.spec.nodeAffinity, affinity);
  });
}
