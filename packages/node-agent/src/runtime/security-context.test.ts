import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec, SecurityContext } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { aContainer, aNodePod } from "../testing/builders.ts";
import type { Cri } from "./cri-schema.ts";
import { containerSecurityContext, namespaceOptions, violatesNonRoot } from "./security-context.ts";

const root = "/var/lib/kubelet/seccomp";
const image = (own: { uid?: number; username?: string }): Cri<"Image"> => ({
  id: "i",
  repoTags: [],
  repoDigests: [],
  size: 1,
  uid: own.uid === undefined ? null : { value: own.uid },
  username: own.username ?? "",
  spec: null,
  pinned: false,
});

function contextOf(
  own: SecurityContext,
  ofPod: NonNullable<PodSpec["securityContext"]> = {},
  more: { annotations?: Record<string, string>; image?: Cri<"Image">; seccompDefault?: boolean; volumeGroups?: number[] } = {},
) {
  const pod = aNodePod({ securityContext: ofPod }, { annotations: more.annotations ?? {} });
  return containerSecurityContext(pod, aContainer({ securityContext: own }), more.image, {
    seccompDefault: more.seccompDefault ?? false,
    seccompRoot: root,
    volumeGroups: more.volumeGroups ?? [],
  });
}

test("a container without settings runs as its image says, unprivileged, with the kernel's files masked and without seccomp", () => {
  const context = contextOf({}, {}, { image: image({ username: "nobody" }) });
  assert.deepEqual(context, {
    capabilities: { addCapabilities: [], dropCapabilities: [] },
    privileged: false,
    namespaceOptions: { network: 0, ipc: 0, pid: 1 },
    selinuxOptions: undefined,
    runAsUser: undefined,
    runAsUsername: "nobody",
    runAsGroup: undefined,
    readonlyRootfs: false,
    supplementalGroups: [],
    noNewPrivs: false,
    maskedPaths: [
      "/proc/asound",
      "/proc/acpi",
      "/proc/kcore",
      "/proc/keys",
      "/proc/latency_stats",
      "/proc/timer_list",
      "/proc/timer_stats",
      "/proc/sched_debug",
      "/proc/scsi",
      "/sys/firmware",
    ],
    readonlyPaths: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    seccomp: { profileType: 1 },
    apparmorProfile: "",
  });
});

test("a container's own settings take effect", () => {
  const context = contextOf({
    privileged: true,
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
    procMount: "Unmasked",
    capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] },
  });
  hasFields(context, {
    privileged: true,
    readonlyRootfs: true,
    noNewPrivs: true,
    capabilities: { addCapabilities: ["NET_ADMIN"], dropCapabilities: ["ALL"] },
  });
  assert.deepEqual([context.maskedPaths, context.readonlyPaths], [[], []]);
  assert.equal(contextOf({ allowPrivilegeEscalation: true }).noNewPrivs, false);
});

test("the pod's user, group and SELinux options apply to containers without their own", () => {
  const ofPod = { runAsUser: 1000, runAsGroup: 2000, seLinuxOptions: { level: "s0" } };
  const shown = (own: SecurityContext) => {
    const { runAsUser, runAsGroup, selinuxOptions, runAsUsername } = contextOf(own, ofPod, {
      image: image({ uid: 5, username: "nobody" }),
    });
    return [runAsUser?.value, runAsGroup?.value, selinuxOptions?.level, runAsUsername];
  };
  assert.deepEqual(shown({}), [1000, 2000, "s0", ""]);
  assert.deepEqual(shown({ runAsUser: 0, runAsGroup: 0, seLinuxOptions: { level: "s1" } }), [0, 0, "s1", ""]);
  assert.deepEqual(contextOf({}, {}, { image: image({ uid: 5, username: "nobody" }) }).runAsUser, { value: 5 });
});

test("the pod's fsGroup and supplemental groups are groups of its containers", () => {
  const ofPod = { fsGroup: 7, supplementalGroups: [8, 9] };
  assert.deepEqual(contextOf({}, ofPod, { volumeGroups: [6] }).supplementalGroups, [7, 8, 9, 6]);
});

test("the AppArmor profile is that of the container's annotation", () => {
  const prefix = "container.apparmor.security.beta.kubernetes.io/";
  const annotations = { [`${prefix}main`]: "localhost/mine", [`${prefix}other`]: "unconfined" };
  assert.equal(contextOf({}, {}, { annotations }).apparmorProfile, "localhost/mine");
});

const ofContainer = "container.seccomp.security.alpha.kubernetes.io/main";
const ofPods = "seccomp.security.alpha.kubernetes.io/pod";
const runtimeDefault = { profileType: 0 };
const unconfined = { profileType: 1 };
const profileNames = ["RuntimeDefault", "Unconfined", "Localhost"];
const local = (path: string) => ({ profileType: 2, localhostRef: `${root}/${path}` });
for (const { name, own, pod, annotations, seccompDefault = false, want } of [
  { name: "nothing says otherwise", want: unconfined },
  { name: "SeccompDefault is on", seccompDefault: true, want: runtimeDefault },
  { name: "SeccompDefault is on, but the pod says Unconfined", pod: "Unconfined", seccompDefault: true, want: unconfined },
  {
    name: "the container has a field beside all others",
    own: "RuntimeDefault",
    pod: "Unconfined",
    annotations: { [ofContainer]: "unconfined", [ofPods]: "unconfined" },
    want: runtimeDefault,
  },
  {
    name: "the container has an annotation beside the pod's field",
    pod: "Unconfined",
    annotations: { [ofContainer]: "runtime/default", [ofPods]: "unconfined" },
    want: runtimeDefault,
  },
  {
    name: "the pod has a field and an annotation",
    pod: "RuntimeDefault",
    annotations: { [ofPods]: "unconfined" },
    want: runtimeDefault,
  },
  { name: "the pod has an annotation", annotations: { [ofPods]: "docker/default" }, want: runtimeDefault },
  {
    name: "the container's annotation says so, whatever the pod's",
    annotations: { [ofContainer]: "unconfined", [ofPods]: "runtime/default" },
    seccompDefault: true,
    want: unconfined,
  },
  { name: "an annotation names a file", annotations: { [ofPods]: "localhost/a/b.json" }, want: local("a/b.json") },
  { name: "a file leads out of the folder", annotations: { [ofPods]: "localhost/../../x" }, want: local("not-a-profile") },
  { name: "a file is the folder", annotations: { [ofPods]: "localhost/." }, want: local("not-a-profile") },
] as {
  name: string;
  own?: string;
  pod?: string;
  annotations?: Record<string, string>;
  seccompDefault?: boolean;
  want: { profileType: number };
}[]) {
  test(`the seccomp profile is ${profileNames[want.profileType]} when ${name}`, () => {
    const field = (type: string | undefined) => (type === undefined ? {} : { seccompProfile: { type } });
    const context = contextOf(field(own), field(pod), { annotations: annotations ?? {}, seccompDefault });
    assert.deepEqual(context.seccomp, want);
  });
}

test("the seccomp field Localhost names a file below the folder", () => {
  const seccompProfile = { type: "Localhost", localhostProfile: "mine.json" };
  assert.deepEqual(contextOf({ seccompProfile }).seccomp, local("mine.json"));
});

for (const { name, spec, targetId, want } of [
  { name: "of its own", spec: {}, want: { network: 0, ipc: 0, pid: 1 } },
  { name: "with the node's network", spec: { hostNetwork: true }, want: { network: 2, ipc: 0, pid: 1 } },
  { name: "with the node's IPC", spec: { hostIPC: true }, want: { network: 0, ipc: 2, pid: 1 } },
  { name: "with processes shared in the pod", spec: { shareProcessNamespace: true }, want: { network: 0, ipc: 0, pid: 0 } },
  {
    name: "with the node's processes, also when shared in the pod",
    spec: { hostPID: true, shareProcessNamespace: true },
    want: { network: 0, ipc: 0, pid: 2 },
  },
  { name: "with those of another container", spec: {}, targetId: "c1", want: { network: 0, ipc: 0, pid: 3, targetId: "c1" } },
] as { name: string; spec: Partial<PodSpec>; targetId?: string; want: object }[]) {
  test(`a container has namespaces ${name}`, () => assert.deepEqual(namespaceOptions(aNodePod(spec), targetId), want));
}

const where = '(pod: "web_default(uid-1)", container: main)';
for (const { name, own = {}, ofPod = {}, found, want } of [
  { name: "may be root", found: image({ uid: 0 }), want: undefined },
  {
    name: "overrides the pod",
    own: { runAsNonRoot: false },
    ofPod: { runAsNonRoot: true },
    found: image({ uid: 0 }),
    want: undefined,
  },
  { name: "names a user", own: { runAsNonRoot: true, runAsUser: 1 }, found: image({ uid: 0 }), want: undefined },
  {
    name: "names root",
    own: { runAsNonRoot: true, runAsUser: 0 },
    want: `container's runAsUser breaks non-root policy ${where}`,
  },
  {
    name: "inherits both from its pod",
    ofPod: { runAsNonRoot: true, runAsUser: 0 },
    want: `container's runAsUser breaks non-root policy ${where}`,
  },
  { name: "has an image with a user", own: { runAsNonRoot: true }, found: image({ uid: 1 }), want: undefined },
  {
    name: "has an image of root",
    own: { runAsNonRoot: true },
    found: image({ uid: 0 }),
    want: `container has runAsNonRoot and image will run as root ${where}`,
  },
  {
    name: "has an image with a user by name",
    own: { runAsNonRoot: true },
    found: image({ username: "nobody" }),
    want: `container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user is non-root ${where}`,
  },
  {
    name: "has an image without a user",
    own: { runAsNonRoot: true },
    found: image({}),
    want: `container has runAsNonRoot and image will run as root ${where}`,
  },
] as { name: string; own?: SecurityContext; ofPod?: SecurityContext; found?: Cri<"Image">; want: string | undefined }[]) {
  test(`runAsNonRoot: a container that ${name} is ${want === undefined ? "allowed" : "refused"}`, () => {
    const { runAsNonRoot, runAsUser } = ofPod;
    const securityContext = {
      ...(runAsNonRoot !== undefined && { runAsNonRoot }),
      ...(runAsUser !== undefined && { runAsUser }),
    };
    assert.equal(violatesNonRoot(aNodePod({ securityContext }), aContainer({ securityContext: own }), found), want);
  });
}
