import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { mirrorSeccomp } from "./seccomp.ts";

const ofPod = "seccomp.security.alpha.kubernetes.io/pod";
const ofContainer = "container.seccomp.security.alpha.kubernetes.io/c";

for (const { name, pod, annotations, profile, containerProfile } of [
  { name: "nothing of nothing", pod: {}, annotations: undefined, profile: undefined, containerProfile: undefined },
  {
    name: "fields of annotations",
    pod: { annotations: { [ofPod]: "localhost/a/b", [ofContainer]: "docker/default" } },
    annotations: { [ofPod]: "localhost/a/b", [ofContainer]: "docker/default" },
    profile: { type: "Localhost", localhostProfile: "a/b" },
    containerProfile: { type: "RuntimeDefault" },
  },
  {
    name: "annotations of fields, beside others",
    pod: {
      annotations: { x: "y" },
      profile: { type: "RuntimeDefault" },
      containerProfile: { type: "Localhost", localhostProfile: "a" },
    },
    annotations: { x: "y", [ofPod]: "runtime/default", [ofContainer]: "localhost/a" },
    profile: { type: "RuntimeDefault" },
    containerProfile: { type: "Localhost", localhostProfile: "a" },
  },
  {
    name: "neither where both are there",
    pod: { annotations: { [ofPod]: "unconfined" }, profile: { type: "RuntimeDefault" } },
    annotations: { [ofPod]: "unconfined" },
    profile: { type: "RuntimeDefault" },
    containerProfile: undefined,
  },
  {
    name: "nothing of what is no profile",
    pod: { annotations: { [ofPod]: "localhost/", [ofContainer]: "mine" } },
    annotations: { [ofPod]: "localhost/", [ofContainer]: "mine" },
    profile: undefined,
    containerProfile: undefined,
  },
  {
    name: "an annotation of a profile with an empty file",
    pod: { profile: { type: "Localhost", localhostProfile: "" } },
    annotations: { [ofPod]: "localhost/" },
    profile: { type: "Localhost", localhostProfile: "" },
    containerProfile: undefined,
  },
  {
    name: "nothing of a profile without its file",
    pod: { profile: { type: "Localhost" } },
    annotations: undefined,
    profile: { type: "Localhost" },
    containerProfile: undefined,
  },
]) {
  test(`seccomp: makes ${name}`, () => {
    const made = aPod(pod);
    mirrorSeccomp(made);
    assert.deepEqual(made.metadata.annotations, annotations);
    assert.deepEqual(made.spec.securityContext?.seccompProfile, profile);
    assert.deepEqual(made.spec.initContainers?.[0]?.securityContext?.seccompProfile, containerProfile);
  });
}

test("seccomp: keeps the rest of a security context", () => {
  const pod = {
    metadata: { annotations: { [ofPod]: "unconfined" } },
    spec: { containers: [], securityContext: { runAsUser: 1 } },
  };
  mirrorSeccomp(pod);
  assert.deepEqual(pod.spec.securityContext, { runAsUser: 1, seccompProfile: { type: "Unconfined" } });
});

test("seccomp: containers of each list have both, under their own names", () => {
  const securityContext = { seccompProfile: { type: "Unconfined" } };
  const lists = ["initContainers", "containers", "ephemeralContainers"];
  const pod = {
    metadata: {},
    spec: Object.fromEntries(lists.map((list) => [list, [{ name: `${list}-0` }, { name: `${list}-1`, securityContext }]])),
  } as unknown as Pod;
  mirrorSeccomp(pod);
  const prefix = ofContainer.slice(0, -1);
  assert.deepEqual(pod.metadata.annotations, Object.fromEntries(lists.map((list) => [`${prefix}${list}-1`, "unconfined"])));
});

interface Parts {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly profile?: object;
  readonly containerProfile?: object;
}

function aPod({ annotations, profile, containerProfile }: Parts): Pod {
  const container = { name: "c", ...(containerProfile && { securityContext: { seccompProfile: containerProfile } }) };
  return {
    metadata: { ...(annotations && { annotations }) },
    spec: {
      containers: [],
      initContainers: [container],
      ...(profile && { securityContext: { seccompProfile: profile } }),
    },
  } as unknown as Pod;
}
