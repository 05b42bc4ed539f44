/** Seed objects that together use each part of the schema. */

import { decodeJson } from "@coxswain/apimachinery/objects/codec/json";
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import { hasProtobufForm } from "@coxswain/apimachinery/objects/codec/protobuf";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { arbitraryObject } from "@coxswain/apimachinery/testing/arbitrary-object";
import fc from "@coxswain/apimachinery/testing/fast-check";

type Gvk = Parameters<typeof hasProtobufForm>[0];

const named = (name: string): { name: string; namespace: string } => ({ name, namespace: "default" });

const podSpec = {
  containers: [
    {
      name: "web",
      image: "nginx:1.21",
      ports: [{ containerPort: 80, protocol: "TCP" }],
      resources: { limits: { cpu: "500m", memory: "1Gi" } },
      livenessProbe: { httpGet: { path: "/", port: "http" }, periodSeconds: 10 },
    },
  ],
  tolerations: [{ key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 30 }],
};

export const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { ...named("web-0"), labels: { app: "web" }, creationTimestamp: "2021-12-07T00:00:00Z" },
  spec: podSpec,
} as KubeObject; // cast: a KubeObject names only the fields of all kinds

export const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { ...named("web"), annotations: { note: "é" } },
  spec: {
    replicas: 3,
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: podSpec },
    strategy: { rollingUpdate: { maxSurge: "25%", maxUnavailable: 1 } },
  },
} as KubeObject; // cast: a KubeObject names only the fields of all kinds

export const customDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "tabs.example.com" },
  spec: {
    group: "example.com",
    names: { plural: "tabs", kind: "Tab" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          },
        },
      },
    ],
  },
} as KubeObject; // cast: a KubeObject names only the fields of all kinds

const secret = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: named("s"),
  data: { a: "aGk=" },
  type: "Opaque",
} as KubeObject; // cast: a KubeObject names only the fields of all kinds

export const kinds: readonly Gvk[] = scheme.kinds().filter(hasProtobufForm).slice(0, 256);

/** A few small objects of arbitrary kinds. */
const some = kinds
  .flatMap((gvk) => {
    const type = scheme.kind(gvk);
    if (type === undefined) return [];
    const [object] = fc.sample(arbitraryObject(type), { numRuns: 1, seed: 20211207 });
    return [decodeJson(encodeAny({ ...object, kind: gvk.kind }), gvk).object];
  })
  .filter((object) => encodeAny(object).length < 500)
  .filter((_object, at) => at % 4 === 0);

export const objects: readonly KubeObject[] = [pod, deployment, customDefinition, secret, ...some];
