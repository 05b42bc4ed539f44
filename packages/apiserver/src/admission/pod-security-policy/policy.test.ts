/** Mutation and validation of a pod by a policy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { PodObject } from "../plugins/pod-of.ts";
import { mutatePod, type Policy } from "./mutate.ts";
import { podErrors } from "./validate.ts";

const any = { rule: "RunAsAny" };
const aPolicy = (spec: object = {}, annotations: Record<string, string> = {}): Policy => ({
  metadata: { name: "p", annotations },
  spec: { seLinux: any, runAsUser: any, supplementalGroups: any, fsGroup: any, volumes: ["*"], ...spec },
});
const aPod = (spec: object = {}, container: object = {}, annotations: Record<string, string> = {}): PodObject => ({
  metadata: { name: "x", annotations },
  spec: { containers: [{ name: "c", ...container }], ...spec },
});
const errorsOf = (policy: Policy, pod: PodObject): string[] => podErrors(policy, pod).map(formatFieldError);
const ranges = [{ min: 10, max: 20 }];
const context = "spec.containers[0].securityContext";

for (const { name, policy, pod = aPod(), want } of [
  { name: "nothing where everything is allowed", policy: aPolicy(), want: aPod().spec },
  {
    name: "the first of the required ranges",
    policy: aPolicy({
      runAsUser: { rule: "MustRunAs", ranges },
      runAsGroup: { rule: "MustRunAs", ranges },
      fsGroup: { rule: "MustRunAs", ranges },
      supplementalGroups: { rule: "MustRunAs", ranges },
    }),
    want: {
      containers: [{ name: "c", securityContext: { runAsUser: 10, runAsGroup: 10 } }],
      securityContext: { fsGroup: 10, supplementalGroups: [10] },
    },
  },
  {
    name: "nothing of ranges that may be used",
    policy: aPolicy({ fsGroup: { rule: "MayRunAs", ranges }, supplementalGroups: { rule: "MayRunAs", ranges } }),
    want: aPod().spec,
  },
  {
    name: "no user where the pod says one",
    policy: aPolicy({ runAsUser: { rule: "MustRunAs", ranges } }),
    pod: aPod({ securityContext: { runAsUser: 12 } }),
    want: aPod({ securityContext: { runAsUser: 12 } }).spec,
  },
  {
    name: "non-root, a read-only root, no escalation, capabilities",
    policy: aPolicy({
      runAsUser: { rule: "MustRunAsNonRoot" },
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      requiredDropCapabilities: ["ALL"],
      defaultAddCapabilities: ["CHOWN"],
    }),
    want: {
      containers: [
        {
          name: "c",
          securityContext: {
            runAsNonRoot: true,
            capabilities: { add: ["CHOWN"], drop: ["ALL"] },
            readOnlyRootFilesystem: true,
            allowPrivilegeEscalation: false,
          },
        },
      ],
    },
  },
  {
    name: "no user where the container says one and the pod another",
    policy: aPolicy({ runAsUser: { rule: "MustRunAs", ranges } }),
    pod: aPod({ securityContext: { runAsUser: 1 } }, { securityContext: { runAsUser: 20 } }),
    want: aPod({ securityContext: { runAsUser: 1 } }, { securityContext: { runAsUser: 20 } }).spec,
  },
  {
    name: "its default for escalation, where the container says nothing",
    policy: aPolicy({ defaultAllowPrivilegeEscalation: false }),
    pod: aPod({ initContainers: [{ name: "i", securityContext: { allowPrivilegeEscalation: true } }] }),
    want: {
      initContainers: [{ name: "i", securityContext: { allowPrivilegeEscalation: true } }],
      containers: [{ name: "c", securityContext: { allowPrivilegeEscalation: false } }],
    },
  },
  {
    name: "default capabilities, but for those that the container drops",
    policy: aPolicy({ defaultAddCapabilities: ["KILL", "CHOWN"] }),
    pod: aPod({}, { securityContext: { capabilities: { drop: ["KILL"] } } }),
    want: aPod({}, { securityContext: { capabilities: { add: ["CHOWN"], drop: ["KILL"] } } }).spec,
  },
  {
    name: "not that it is no root to a container with a user",
    policy: aPolicy({ runAsUser: { rule: "MustRunAsNonRoot" } }),
    pod: aPod({}, { securityContext: { runAsUser: 5 } }),
    want: aPod({}, { securityContext: { runAsUser: 5 } }).spec,
  },
  {
    name: "a user to ephemeral containers, too",
    policy: aPolicy({ runAsUser: { rule: "MustRunAs", ranges } }),
    pod: aPod({ containers: [], ephemeralContainers: [{ name: "e" }] }),
    want: { containers: [], ephemeralContainers: [{ name: "e", securityContext: { runAsUser: 10 } }] },
  },
  {
    name: "its SELinux options",
    policy: aPolicy({ seLinux: { rule: "MustRunAs", seLinuxOptions: { level: "s0:c1,c2", user: "u" } } }),
    want: {
      containers: [{ name: "c" }],
      securityContext: { seLinuxOptions: { level: "s0:c1,c2", user: "u" } },
    },
  },
  {
    name: "a runtime class",
    policy: aPolicy({ runtimeClass: { allowedRuntimeClassNames: ["*"], defaultRuntimeClassName: "vm" } }),
    want: { ...aPod().spec, runtimeClassName: "vm" },
  },
] as const) {
  test(`a policy gives ${name}`, () => {
    const mutated = structuredClone(pod) as PodObject;
    mutatePod(policy, mutated);
    assert.deepEqual(mutated.spec, want);
    assert.deepEqual(errorsOf(policy, mutated), []);
  });
}

test("a policy gives default profiles, in every container", () => {
  const policy = aPolicy(
    {},
    {
      "seccomp.security.alpha.kubernetes.io/defaultProfileName": "runtime/default",
      "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "docker/default",
      "apparmor.security.beta.kubernetes.io/defaultProfileName": "runtime/default",
      "apparmor.security.beta.kubernetes.io/allowedProfileNames": "runtime/default",
    },
  );
  const apparmor = "container.apparmor.security.beta.kubernetes.io";
  const pod = aPod({ initContainers: [{ name: "i" }, { name: "own" }] }, {}, { [`${apparmor}/own`]: "localhost/p" });
  const [refusal, ...others] = errorsOf(policy, pod).filter((error) => error.includes("apparmor"));
  assert.match(refusal ?? "", /\/i\]: Forbidden: AppArmor profile must be set$/);
  assert.equal(others.length, 2);
  mutatePod(policy, pod);
  assert.equal(pod.metadata.annotations?.[`${apparmor}/own`], "localhost/p", "its own stays");
  delete pod.metadata.annotations?.[`${apparmor}/own`];
  pod.spec.initContainers?.pop();
  assert.deepEqual(pod.metadata.annotations, {
    "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
    "container.apparmor.security.beta.kubernetes.io/i": "runtime/default",
    "container.apparmor.security.beta.kubernetes.io/c": "runtime/default",
  });
  assert.deepEqual(pod.spec.securityContext, { seccompProfile: { type: "RuntimeDefault" } });
  assert.deepEqual(errorsOf(policy, pod), []);
});

for (const [profile, want] of [
  ["unconfined", { type: "Unconfined" }],
  ["docker/default", { type: "RuntimeDefault" }],
  ["localhost/a/b", { type: "Localhost", localhostProfile: "a/b" }],
  ["other", undefined],
] as const) {
  test(`the default profile ${profile} of a policy is ${want === undefined ? "an annotation alone" : `the field ${want.type}, too`}`, () => {
    const pod = aPod();
    mutatePod(aPolicy({}, { "seccomp.security.alpha.kubernetes.io/defaultProfileName": profile }), pod);
    assert.equal(pod.metadata.annotations?.["seccomp.security.alpha.kubernetes.io/pod"], profile);
    assert.deepEqual(pod.spec.securityContext?.seccompProfile, want);
  });
}

for (const { name, policy, pod } of [
  {
    name: "ids at both ends of a range",
    policy: aPolicy({ runAsUser: { rule: "MustRunAs", ranges }, supplementalGroups: { rule: "MayRunAs", ranges } }),
    pod: aPod({ securityContext: { supplementalGroups: [20, 10] }, initContainers: [{ name: "i" }] }, { securityContext: {} }),
  },
  {
    name: "all capabilities",
    policy: aPolicy({ allowedCapabilities: ["*"] }),
    pod: aPod({}, { securityContext: { capabilities: { add: ["NET_ADMIN"] } } }),
  },
  {
    name: "another mount of /proc",
    policy: aPolicy({ allowedProcMountTypes: ["Unmasked"] }),
    pod: aPod({}, { securityContext: { procMount: "Unmasked" } }),
  },
  {
    name: "paths of the host below a prefix that ends in a slash, and the prefix itself",
    policy: aPolicy({ allowedHostPaths: [{ pathPrefix: "/foo/" }] }),
    pod: aPod({
      volumes: [
        { name: "a", hostPath: { path: "/foo" } },
        { name: "b", hostPath: { path: "/foo/bar/" } },
      ],
    }),
  },
  {
    name: "a path that one prefix allows for reading and another for writing",
    policy: aPolicy({ allowedHostPaths: [{ pathPrefix: "/", readOnly: true }, { pathPrefix: "/foo" }] }),
    pod: aPod({ volumes: [{ name: "a", hostPath: { path: "/foo" } }] }, { volumeMounts: [{ name: "a", mountPath: "/a" }] }),
  },
  {
    name: "every driver, where it names none",
    policy: aPolicy(),
    pod: aPod({
      volumes: [
        { name: "a", flexVolume: { driver: "z" } },
        { name: "b", csi: { driver: "z" } },
      ],
    }),
  },
  {
    name: "the host's namespaces, where it says so",
    policy: aPolicy({ hostNetwork: true, hostPID: true, hostIPC: true }),
    pod: aPod({ hostNetwork: true, hostPID: true, hostIPC: true }),
  },
  { name: "the usual mount of /proc, also where its list is empty", policy: aPolicy({ allowedProcMountTypes: [] }), pod: aPod() },
  {
    name: "a local seccomp profile without a name, which is none",
    policy: aPolicy(),
    pod: aPod({ securityContext: { seccompProfile: { type: "Localhost" } } }),
  },
  {
    name: "a container's seccomp annotation, which counts before its field and before the pod's",
    policy: aPolicy({}, { "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "localhost/p,unconfined" }),
    pod: aPod(
      {},
      { securityContext: { seccompProfile: { type: "RuntimeDefault" } } },
      {
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/p",
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
      },
    ),
  },
  {
    name: "every seccomp profile, also one that is told from its field",
    policy: aPolicy({}, { "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "runtime/default,*" }),
    pod: aPod({ securityContext: { seccompProfile: { type: "Unconfined" } } }),
  },
  {
    name: "no seccomp, for a pod that says so in its field",
    policy: aPolicy({}, { "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "unconfined" }),
    pod: aPod({ securityContext: { seccompProfile: { type: "Unconfined" } } }),
  },
  {
    name: "a local seccomp profile, for a pod that names it in its field",
    policy: aPolicy({}, { "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "localhost/p" }),
    pod: aPod({ securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "p" } } }),
  },
] as { name: string; policy: Policy; pod: PodObject }[]) {
  test(`a policy allows ${name}`, () => {
    mutatePod(policy, pod);
    assert.deepEqual(errorsOf(policy, pod), []);
  });
}

const nothing = aPolicy({ volumes: [], allowPrivilegeEscalation: false });
for (const { name, policy = aPolicy(), pod, want } of [
  {
    name: "the host's namespaces",
    pod: aPod({ hostNetwork: true, hostPID: true, hostIPC: true }),
    want: [
      "spec.securityContext.hostNetwork: Invalid value: true: Host network is not allowed to be used",
      "spec.securityContext.hostPID: Invalid value: true: Host PID is not allowed to be used",
      "spec.securityContext.hostIPC: Invalid value: true: Host IPC is not allowed to be used",
    ],
  },
  {
    name: "privilege, in containers of every kind",
    pod: aPod({
      containers: [],
      initContainers: [{ name: "i", securityContext: { privileged: true } }],
      ephemeralContainers: [{ name: "e", securityContext: { privileged: true } }],
    }),
    want: [
      "spec.initContainers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed",
      "spec.ephemeralContainers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed",
    ],
  },
  {
    name: "escalation, also when nothing is said",
    policy: nothing,
    pod: aPod({}, { securityContext: {} }),
    want: [
      `${context}.allowPrivilegeEscalation: Invalid value: "null": Allowing privilege escalation for containers is not allowed`,
    ],
  },
  {
    name: "a container without capabilities, where some are added by default",
    policy: aPolicy({ defaultAddCapabilities: ["CHOWN"] }),
    pod: aPod(),
    want: [`${context}.capabilities: Invalid value: "null": required capabilities are not set on the securityContext`],
  },
  {
    name: "a container without capabilities, where some have to be dropped",
    policy: aPolicy({ requiredDropCapabilities: ["KILL"] }),
    pod: aPod(),
    want: [`${context}.capabilities: Invalid value: "null": required capabilities are not set on the securityContext`],
  },
  {
    name: "a container without an AppArmor profile, where none is named as allowed",
    policy: aPolicy({}, { "apparmor.security.beta.kubernetes.io/allowedProfileNames": "" }),
    pod: aPod(),
    want: ["pod.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: AppArmor profile must be set"],
  },
  {
    name: "capabilities",
    policy: aPolicy({ allowedCapabilities: ["CHOWN"], requiredDropCapabilities: ["KILL"] }),
    pod: aPod({}, { securityContext: { capabilities: { add: ["CHOWN", "NET_ADMIN"], drop: ["MKNOD"] } } }),
    want: [
      `${context}.capabilities.add: Invalid value: "NET_ADMIN": capability may not be added`,
      `${context}.capabilities.drop: Invalid value: []core.Capability{"MKNOD"}: KILL is required to be dropped but was not found`,
    ],
  },
  {
    name: "host ports",
    policy: aPolicy({
      hostPorts: [
        { min: 80, max: 80 },
        { min: 8000, max: 9000 },
      ],
    }),
    pod: aPod({}, { ports: [{ hostPort: 80 }, { hostPort: 81 }] }),
    want: [
      "spec.containers[0].hostPort: Invalid value: 81: Host port 81 is not allowed to be used. Allowed ports: [80,8000-9000]",
    ],
  },
  {
    name: "kinds of volumes",
    policy: aPolicy({ volumes: ["configMap"] }),
    pod: aPod({
      volumes: [
        { name: "a", configMap: {} },
        { name: "b", hostPath: { path: "/" } },
        { name: "c", cephfs: {} },
      ],
    }),
    want: [
      'spec.volumes[1]: Invalid value: "hostPath": hostPath volumes are not allowed to be used',
      'spec.volumes[2]: Invalid value: "cephFS": cephFS volumes are not allowed to be used',
    ],
  },
  {
    name: "paths of the host, by whole steps",
    policy: aPolicy({ allowedHostPaths: [{ pathPrefix: "/foo", readOnly: true }] }),
    pod: aPod(
      {
        volumes: [
          { name: "a", hostPath: { path: "/foobar" } },
          { name: "b", hostPath: { path: "/foo/bar" } },
        ],
      },
      {
        volumeMounts: [
          { name: "b", mountPath: "/b" },
          { name: "b", mountPath: "/c", readOnly: true },
          { name: "other", mountPath: "/d" },
        ],
      },
    ),
    want: [
      'spec.volumes[0].hostPath.pathPrefix: Invalid value: "/foobar": is not allowed to be used',
      "spec.containers[0].volumeMounts[0].readOnly: Invalid value: false: must be read-only",
    ],
  },
  {
    name: "drivers",
    policy: aPolicy({ allowedFlexVolumes: [{ driver: "x" }], allowedCSIDrivers: [{ name: "y" }] }),
    pod: aPod({
      volumes: [
        { name: "a", flexVolume: { driver: "z" } },
        { name: "b", csi: { driver: "z" } },
      ],
    }),
    want: [
      'spec.volumes[0].driver: Invalid value: "z": Flexvolume driver is not allowed to be used',
      'spec.volumes[1].csi.driver: Invalid value: "z": Inline CSI driver is not allowed to be used',
    ],
  },
  {
    name: "users and groups",
    policy: aPolicy({
      runAsUser: { rule: "MustRunAs", ranges },
      runAsGroup: { rule: "MayRunAs", ranges },
      fsGroup: { rule: "MustRunAs", ranges },
      supplementalGroups: { rule: "MayRunAs", ranges },
    }),
    pod: aPod({ securityContext: { supplementalGroups: [15, 5] } }, { securityContext: { runAsUser: 1, runAsGroup: 2 } }),
    want: [
      "spec.securityContext.fsGroup: Invalid value: []int64(nil): unable to validate empty groups against required ranges",
      "spec.securityContext.supplementalGroups: Invalid value: []int64{15, 5}: group 5 must be in the ranges: [{10 20}]",
      `${context}.runAsUser: Invalid value: 1: must be in the ranges: [{10 20}]`,
      `${context}: Invalid value: []int64{2}: group 2 must be in the ranges: [{10 20}]`,
    ],
  },
  {
    name: "a container that may be root, although its user is none",
    policy: aPolicy({ runAsUser: { rule: "MustRunAsNonRoot" } }),
    pod: aPod({ securityContext: { runAsNonRoot: true } }, { securityContext: { runAsNonRoot: false, runAsUser: 5 } }),
    want: [`${context}.runAsNonRoot: Invalid value: false: must be true`],
  },
  {
    name: "a container without or with another AppArmor profile, where it names some",
    policy: aPolicy({}, { "apparmor.security.beta.kubernetes.io/allowedProfileNames": "runtime/default,localhost/p" }),
    pod: aPod({ initContainers: [{ name: "i" }] }, {}, { "container.apparmor.security.beta.kubernetes.io/c": "localhost/q" }),
    want: [
      "pod.metadata.annotations[container.apparmor.security.beta.kubernetes.io/i]: Forbidden: AppArmor profile must be set",
      'pod.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: localhost/q is not an allowed profile. Allowed values: "runtime/default,localhost/p"',
    ],
  },
  {
    name: "a container without what has to be said",
    policy: aPolicy({ runAsUser: { rule: "MustRunAs", ranges }, seLinux: { rule: "MustRunAs" }, readOnlyRootFilesystem: true }),
    pod: aPod(),
    want: [
      "spec.securityContext.seLinuxOptions: Required value",
      `${context}.runAsUser: Required value`,
      `${context}.seLinuxOptions: Required value`,
      `${context}.readOnlyRootFilesystem: Invalid value: "null": ReadOnlyRootFilesystem may not be nil and must be set to true`,
    ],
  },
  {
    name: "a container that does not say that it is no root",
    policy: aPolicy({ runAsUser: { rule: "MustRunAsNonRoot" } }),
    pod: aPod(),
    want: [`${context}.runAsNonRoot: Required value: must be true`],
  },
  {
    name: "an SELinux level without categories, where it names some",
    policy: aPolicy({ seLinux: { rule: "MustRunAs", seLinuxOptions: { level: "s0:c1" } } }),
    pod: aPod({ securityContext: { seLinuxOptions: { level: "s0" } } }),
    want: [
      'spec.securityContext.seLinuxOptions.level: Invalid value: "s0": must be s0:c1',
      `${context}.seLinuxOptions.level: Invalid value: "s0": must be s0:c1`,
    ],
  },
  {
    name: "root",
    policy: aPolicy({ runAsUser: { rule: "MustRunAsNonRoot" } }),
    pod: aPod({}, { securityContext: { runAsUser: 0 } }),
    want: [`${context}.runAsUser: Invalid value: 0: running with the root UID is forbidden`],
  },
  {
    name: "SELinux labels, but for the order of categories",
    policy: aPolicy({ seLinux: { rule: "MustRunAs", seLinuxOptions: { level: "s0:c1,c2", user: "u" } } }),
    pod: aPod({ securityContext: { seLinuxOptions: { level: "s0:c2,c1", user: "v" } } }),
    want: [
      'spec.securityContext.seLinuxOptions.user: Invalid value: "v": must be u',
      `${context}.seLinuxOptions.user: Invalid value: "v": must be u`,
    ],
  },
  {
    name: "sysctls",
    policy: aPolicy({ forbiddenSysctls: ["kernel.shm*", "fs.a"], allowedUnsafeSysctls: ["net.core.*", "fs.b"] }),
    pod: aPod({
      securityContext: {
        sysctls: [
          "kernel.shm_rmid_forced",
          "net.core.x",
          "vm.x",
          "net.ipv4.tcp_syncookies",
          "fs.a",
          "fs.ab",
          "fs.b",
          "fs.bc",
        ].map((name) => ({ name })),
      },
    }),
    want: [
      'pod.spec.securityContext.sysctls[0]: Forbidden: sysctl "kernel.shm_rmid_forced" is not allowed',
      'pod.spec.securityContext.sysctls[2]: Forbidden: unsafe sysctl "vm.x" is not allowed',
      'pod.spec.securityContext.sysctls[4]: Forbidden: sysctl "fs.a" is not allowed',
      'pod.spec.securityContext.sysctls[5]: Forbidden: unsafe sysctl "fs.ab" is not allowed',
      'pod.spec.securityContext.sysctls[7]: Forbidden: unsafe sysctl "fs.bc" is not allowed',
    ],
  },
  {
    name: "a mount of /proc, and a root that can be written to",
    policy: aPolicy({ readOnlyRootFilesystem: true }),
    pod: aPod({}, { securityContext: { procMount: "Unmasked", readOnlyRootFilesystem: false } }),
    want: [
      `${context}.procMount: Invalid value: "Unmasked": ProcMountType is not allowed`,
      `${context}.readOnlyRootFilesystem: Invalid value: false: ReadOnlyRootFilesystem must be set to true`,
    ],
  },
  {
    name: "a runtime class",
    policy: aPolicy({ runtimeClass: { allowedRuntimeClassNames: ["vm"] } }),
    pod: aPod({ runtimeClassName: "other" }),
    want: ['spec.runtimeClassName: Invalid value: "other"'],
  },
  {
    name: "seccomp where no profile is allowed",
    pod: aPod({ securityContext: { seccompProfile: { type: "RuntimeDefault" } } }),
    want: [
      "pod.metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: Forbidden: seccomp may not be set",
      "pod.metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: Forbidden: seccomp may not be set",
    ],
  },
] as const) {
  test(`a policy refuses ${name}`, () => assert.deepEqual(errorsOf(policy, pod), want));
}

test("a policy that allows secrets allows every pod's token volume, and no other projection", () => {
  const token = { serviceAccountToken: { path: "token", expirationSeconds: 3607 } };
  const rest = [
    { configMap: { name: "kube-root-ca.crt" } },
    { downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] } },
  ];
  const withSources = (sources: object[]): PodObject => aPod({ volumes: [{ name: "t", projected: { sources } }] });
  const policy = aPolicy({ volumes: ["secret"] });
  assert.deepEqual(errorsOf(policy, withSources([token, ...rest])), []);
  const forAnother = { serviceAccountToken: { ...token.serviceAccountToken, audience: "vault" } };
  const [item] = rest[1]?.downwardAPI?.items ?? [];
  const more = { downwardAPI: { items: [item, { ...item, path: "name" }] } };
  for (const sources of [[forAnother], [{ configMap: { name: "other" } }], [more]])
    assert.equal(errorsOf(policy, withSources(sources)).length, 1, JSON.stringify(sources));
  assert.deepEqual(errorsOf(policy, withSources([token, ...rest, { secret: { name: "s" } }])), [
    'spec.volumes[0]: Invalid value: "projected": projected volumes are not allowed to be used',
  ]);
});
