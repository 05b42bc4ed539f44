import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume } from "../objects/schema/kinds/core/v1.ts";
import { csiNodeAffinity } from "./csi-topology.ts";

const zone = "topology.kubernetes.io/zone";
const region = "topology.kubernetes.io/region";
const betaZone = "failure-domain.beta.kubernetes.io/zone";
const betaRegion = "failure-domain.beta.kubernetes.io/region";
const ebs = "topology.ebs.csi.aws.com/zone";
const one = (key: string, ...values: string[]) => ({ key, operator: "In", values });
const terms = (...all: object[][]) => ({
  required: { nodeSelectorTerms: all.map((matchExpressions) => ({ matchExpressions })) },
});

for (const { name, plugin = "kubernetes.io/aws-ebs", affinity, labels = {}, want } of [
  { name: "a zone", affinity: terms([one(zone, "a")]), want: terms([one(ebs, "a")]) },
  {
    name: "a zone, whatever the labels say",
    affinity: terms([one(zone, "a")]),
    labels: { [zone]: "b" },
    want: terms([one(ebs, "a")]),
  },
  {
    name: "zone and region of before",
    affinity: terms([one(betaZone, "a"), one(betaRegion, "r")], [one(betaZone, "b"), one("disk", "ssd")]),
    want: terms([one(ebs, "a"), one(region, "r")], [one(ebs, "b"), one("disk", "ssd")]),
  },
  {
    name: "a zone that is not the first of its requirements",
    affinity: terms([one("disk", "ssd"), one(zone, "a")]),
    want: terms([one("disk", "ssd"), one(ebs, "a")]),
  },
  {
    name: "a region of now",
    affinity: terms([one(zone, "a"), one(region, "r")]),
    want: terms([one(ebs, "a"), one(region, "r")]),
  },
  { name: "the zone of its labels", affinity: undefined, labels: { [zone]: "a" }, want: terms([one(ebs, "a")]) },
  {
    name: "the zones of its labels, besides what it says",
    affinity: terms([one("disk", "ssd")], [one("disk", "hdd")]),
    labels: { [betaZone]: "b__a__ " },
    want: terms([one("disk", "ssd"), one(ebs, "a", "b")], [one("disk", "hdd"), one(ebs, "a", "b")]),
  },
  { name: "nothing", affinity: undefined, want: undefined },
  { name: "nothing of a volume without labels", affinity: undefined, labels: null, want: undefined },
  {
    name: "the region of before, of a volume without zones",
    affinity: terms([one(betaRegion, "r")]),
    want: terms([one(betaRegion, "r")]),
  },
  {
    name: "a zone of before, whatever zone of now is in its labels",
    affinity: terms([one(betaZone, "a"), one(betaRegion, "r")]),
    labels: { [zone]: "b" },
    want: terms([one(ebs, "a"), one(region, "r")]),
  },
  {
    name: "a zone of before that is not the first of its requirements, whatever zone of now is in its labels",
    affinity: terms([one("disk", "ssd"), one(betaZone, "a")]),
    labels: { [zone]: "b" },
    want: terms([one("disk", "ssd"), one(ebs, "a")]),
  },
  {
    name: "a zone of now, beside one of before",
    affinity: terms([one(betaZone, "b")], [one(zone, "a")]),
    labels: { [betaZone]: "c" },
    want: terms([one(betaZone, "b")], [one(ebs, "a")]),
  },
  {
    name: "a region of now, of a volume whose labels have zones of both",
    affinity: terms([one(region, "r")]),
    labels: { [zone]: "b__a", [betaZone]: "c" },
    want: terms([one(region, "r"), one(ebs, "a", "b")]),
  },
  { name: "nothing of zones", affinity: terms([one("disk", "ssd")]), want: terms([one("disk", "ssd")]) },
  {
    name: "a zone of a driver that has no label for it",
    plugin: "kubernetes.io/rbd",
    affinity: terms([one(zone, "a")]),
    labels: { [zone]: "b" },
    want: terms([one(zone, "a")]),
  },
  {
    name: "a zone of OpenStack's",
    plugin: "kubernetes.io/cinder",
    affinity: terms([one(zone, "a")]),
    want: terms([one("topology.cinder.csi.openstack.org/zone", "a")]),
  },
  {
    name: "a region of before, with the zone of its labels of before",
    affinity: terms([one(betaRegion, "r")]),
    labels: { [betaZone]: "b" },
    want: terms([one(region, "r"), one(ebs, "b")]),
  },
  {
    name: "a zone of its labels of now rather than of before",
    affinity: undefined,
    labels: { [betaZone]: "b", [zone]: "a" },
    want: terms([one(ebs, "a")]),
  },
  {
    name: "a zone of Google's",
    plugin: "kubernetes.io/gce-pd",
    affinity: terms([one(zone, "a")]),
    want: terms([one("topology.gke.io/zone", "a")]),
  },
] as { name: string; plugin?: string; affinity?: object; labels?: Record<string, string> | null; want?: object }[]) {
  test(`a driver's terms for ${name}`, () => {
    const volume = {
      metadata: { name: "pv", ...(labels !== null && { labels }) },
      spec: { ...(affinity !== undefined && { nodeAffinity: affinity }) },
    } as PersistentVolume;
    const before = structuredClone(volume);
    assert.deepEqual(csiNodeAffinity(volume, plugin), want);
    assert.deepEqual(volume, before, "what is stored stays as it is");
  });
}
