import assert from "node:assert/strict";
import { test } from "node:test";
import { violations } from "./checks.ts";

const text = (level: "baseline" | "restricted", spec: object, annotations = {}, minor = 23): string =>
  violations(level, minor, { annotations }, spec as never)
    .map(({ reason, detail }) => `${reason} (${detail})`)
    .join(", ");
const container = (securityContext?: object, more: object = {}): object => ({
  name: "c",
  ...(securityContext && { securityContext }),
  ...more,
});
const good = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  runAsNonRoot: true,
  seccompProfile: { type: "RuntimeDefault" },
};

test("a plain pod meets baseline and says what restricted wants", () => {
  const spec = { containers: [container()] };
  assert.equal(text("baseline", spec), "");
  assert.equal(
    text("restricted", spec),
    'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), ' +
      'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), ' +
      'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), ' +
      'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  );
  assert.equal(text("restricted", { containers: [container(good)] }), "");
});

for (const { name, spec, annotations = {}, want } of [
  {
    name: "host namespaces",
    spec: { hostPID: true, hostNetwork: true, containers: [] },
    want: "host namespaces (hostNetwork=true, hostPID=true)",
  },
  { name: "the host's IPC alone", spec: { hostIPC: true, containers: [] }, want: "host namespaces (hostIPC=true)" },
  {
    name: "privileged",
    spec: { containers: [container({ privileged: true })] },
    want: 'privileged (container "c" must not set securityContext.privileged=true)',
  },
  {
    name: "privileged in an init and an ephemeral container",
    spec: {
      containers: [],
      initContainers: [{ name: "i", securityContext: { privileged: true } }],
      ephemeralContainers: [{ name: "e", securityContext: { privileged: true } }],
    },
    want: 'privileged (containers "i", "e" must not set securityContext.privileged=true)',
  },
  {
    name: "capabilities",
    spec: { containers: [container({ capabilities: { add: ["NET_ADMIN", "CHOWN"] } })] },
    want: 'non-default capabilities (container "c" must not include "NET_ADMIN" in securityContext.capabilities.add)',
  },
  {
    name: "hostPath",
    spec: { containers: [], volumes: [{ name: "v", hostPath: { path: "/" } }] },
    want: 'hostPath volumes (volume "v")',
  },
  {
    name: "host ports",
    spec: { containers: [container(undefined, { ports: [{ hostPort: 80 }, { containerPort: 1 }] })] },
    want: 'hostPort (container "c" uses hostPort 80)',
  },
  {
    name: "sysctls",
    spec: { containers: [], securityContext: { sysctls: [{ name: "kernel.msgmax" }] } },
    want: "forbidden sysctls (kernel.msgmax)",
  },
  {
    name: "seccomp unconfined",
    spec: { containers: [], securityContext: { seccompProfile: { type: "Unconfined" } } },
    want: 'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
  },
  {
    name: "AppArmor",
    spec: { containers: [] },
    annotations: { "container.apparmor.security.beta.kubernetes.io/c": "unconfined" },
    want: 'forbidden AppArmor profile (container.apparmor.security.beta.kubernetes.io/c="unconfined")',
  },
]) {
  test(`baseline forbids: ${name}`, () => assert.equal(text("baseline", spec, annotations), want));
}

test("restricted names volume types, and replaces the check of baseline", () => {
  const spec = {
    containers: [container(good)],
    volumes: [
      { name: "v", hostPath: { path: "/" } },
      { name: "w", configMap: {} },
    ],
  };
  assert.equal(text("restricted", spec), 'restricted volume types (volume "v" uses restricted volume type "hostPath")');
});

test("an older version of the standard does not know later checks", () => {
  const spec = { containers: [container({ ...good, runAsUser: 0 })] };
  assert.equal(text("restricted", spec, {}, 22), "");
  assert.equal(text("restricted", spec), 'runAsUser=0 (container "c" must not set runAsUser=0)');
});

test("only versions that know a check refuse what it forbids", () => {
  const spec = { containers: [container({ runAsNonRoot: true })] };
  assert.equal(text("restricted", spec, {}, 7), "");
  assert.match(text("restricted", spec, {}, 8), /^allowPrivilegeEscalation != false \(container "c"[^,]*$/);
  const dropsNothing = { containers: [container({ ...good, capabilities: {} })] };
  assert.equal(text("restricted", dropsNothing, {}, 21), "");
  assert.match(text("restricted", dropsNothing, {}, 22), /^unrestricted capabilities/);
});

test("good seccomp annotations are accepted where annotations count", () => {
  const spec = { containers: [container()], initContainers: [{ name: "i" }] };
  const annotations = {
    "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
    "container.seccomp.security.alpha.kubernetes.io/c": "runtime/default",
    "container.seccomp.security.alpha.kubernetes.io/i": "localhost/p",
    "container.seccomp.security.alpha.kubernetes.io/other": "unconfined",
  };
  assert.equal(text("baseline", spec, annotations, 18), "");
  const bad = { ...annotations, "container.seccomp.security.alpha.kubernetes.io/i": "unconfined" };
  assert.equal(
    text("baseline", spec, bad, 18),
    'seccompProfile (forbidden annotation container.seccomp.security.alpha.kubernetes.io/i="unconfined")',
  );
});

test("seccomp was a matter of annotations once, and is one of fields since 1.19", () => {
  const annotations = {
    "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
    "container.seccomp.security.alpha.kubernetes.io/c": "localhost/x",
  };
  const spec = { containers: [container({ seccompProfile: { type: "Unconfined" } })] };
  assert.equal(
    text("baseline", spec, annotations, 18),
    'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
  );
  assert.equal(
    text("baseline", spec, annotations, 19),
    'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
  );
});

const two = (a: object, b: object, pod?: object): object => ({
  ...(pod && { securityContext: pod }),
  containers: [
    { name: "a", securityContext: a },
    { name: "b", securityContext: b },
  ],
});
const appArmor = "container.apparmor.security.beta.kubernetes.io/";
const profiles = { b: "unconfined", a: "x", c: "localhost/p", d: "runtime/default", e: "" };
const withProfiles = Object.fromEntries(Object.entries(profiles).map(([name, profile]) => [appArmor + name, profile]));

for (const [level, name, spec, want] of [
  [
    "baseline",
    "AppArmor profiles",
    { containers: [] },
    'forbidden AppArmor profiles (container.apparmor.security.beta.kubernetes.io/a="x", container.apparmor.security.beta.kubernetes.io/b="unconfined")',
  ],
  [
    "baseline",
    "capabilities",
    two({ capabilities: { add: ["SYS_ADMIN", "NET_ADMIN"] } }, { capabilities: { add: ["CHOWN", "SYS_ADMIN"] } }),
    'non-default capabilities (containers "a", "b" must not include "NET_ADMIN", "SYS_ADMIN" in securityContext.capabilities.add)',
  ],
  [
    "baseline",
    "the capabilities of every container runtime",
    two(
      { capabilities: { add: ["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"] } },
      { capabilities: { add: ["NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"] } },
    ),
    "",
  ],
  [
    "baseline",
    "SELinux types of containers",
    two({ seLinuxOptions: { type: "container_init_t" } }, { seLinuxOptions: { type: "" } }, { seLinuxOptions: { level: "s0" } }),
    "",
  ],
  [
    "baseline",
    "hostPath volumes",
    {
      containers: [],
      volumes: [
        { name: "v", hostPath: {} },
        { name: "x", emptyDir: {} },
        { name: "w", hostPath: {} },
      ],
    },
    'hostPath volumes (volumes "v", "w")',
  ],
  [
    "baseline",
    "host ports",
    {
      containers: [
        { name: "a", ports: [{ containerPort: 1 }, { hostPort: 9 }, { hostPort: 80 }] },
        { name: "b", ports: [{ hostPort: 80 }] },
        { name: "c", ports: [{ containerPort: 2 }] },
      ],
    },
    'hostPort (containers "a", "b" use hostPorts 80, 9)', // sorted as texts
  ],
  [
    "baseline",
    "mounts of /proc",
    two({ procMount: "Unmasked" }, { procMount: "Other" }),
    'procMount (containers "a", "b" must not set securityContext.procMount to "Other", "Unmasked")',
  ],
  ["baseline", "the default mount of /proc", two({ procMount: "Default" }, {}), ""],
  [
    "baseline",
    "SELinux options of pod and containers",
    two(
      { seLinuxOptions: { type: "b_t" } },
      { seLinuxOptions: { type: "container_t", role: "r" } },
      { seLinuxOptions: { type: "a_t", user: "u" } },
    ),
    'seLinuxOptions (pod and containers "a", "b" set forbidden securityContext.seLinuxOptions: types "a_t", "b_t"; user may not be set; role may not be set)',
  ],
  [
    "baseline",
    "SELinux options of one container",
    two({ seLinuxOptions: { type: "container_kvm_t" } }, { seLinuxOptions: { user: "u" } }),
    'seLinuxOptions (container "b" set forbidden securityContext.seLinuxOptions: user may not be set)',
  ],
  [
    "baseline",
    "seccomp profiles",
    two(
      { seccompProfile: { type: "Unconfined" } },
      { seccompProfile: { type: "Unconfined" } },
      { seccompProfile: { type: "Unconfined" } },
    ),
    'seccompProfile (pod and containers "a", "b" must not set securityContext.seccompProfile.type to "Unconfined")',
  ],
  [
    "baseline",
    "sysctls",
    {
      containers: [],
      securityContext: { sysctls: [{ name: "kernel.msgmax" }, { name: "kernel.shm_rmid_forced" }, { name: "kernel.sem" }] },
    },
    "forbidden sysctls (kernel.msgmax, kernel.sem)",
  ],
  [
    "baseline",
    "host processes",
    two(
      { windowsOptions: { hostProcess: true } },
      { windowsOptions: { hostProcess: true } },
      { windowsOptions: { hostProcess: true } },
    ),
    'hostProcess (pod and containers "a", "b" must not set securityContext.windowsOptions.hostProcess=true)',
  ],
  [
    "restricted",
    "capabilities kept and added",
    two(
      { ...good, capabilities: { add: ["NET_BIND_SERVICE"] } },
      { ...good, capabilities: { drop: ["ALL"], add: ["SYS_ADMIN", "CHOWN"] } },
    ),
    'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; container "b" must not include "CHOWN", "SYS_ADMIN" in securityContext.capabilities.add)',
  ],
  [
    "restricted",
    "volume types",
    {
      ...two(good, good),
      volumes: [
        { name: "v", nfs: {} },
        { name: "c", csi: {} },
        { name: "w", hostPath: {} },
        { name: "n" },
        { name: "z", nfs: {} },
      ],
    },
    'restricted volume types (volumes "v", "w", "z" use restricted volume types "hostPath", "nfs")',
  ],
  [
    "restricted",
    "allowed volume types",
    {
      ...two(good, good),
      volumes: [
        { name: "a", configMap: {} },
        { name: "b", downwardAPI: {} },
        { name: "c", emptyDir: {} },
        { name: "d", projected: {} },
        { name: "e", secret: {} },
        { name: "f", csi: {} },
        { name: "g", persistentVolumeClaim: {} },
        { name: "h", ephemeral: {} },
      ],
    },
    "",
  ],
  [
    "restricted",
    "root of pod and container",
    two({ ...good, runAsNonRoot: false }, good, { runAsNonRoot: false }),
    'runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false)',
  ],
  [
    "restricted",
    "root of a container of a pod without",
    two({ ...good, runAsNonRoot: false }, { ...good, runAsNonRoot: undefined }, { runAsNonRoot: true }),
    'runAsNonRoot != true (container "a" must not set securityContext.runAsNonRoot=false)',
  ],
  [
    "restricted",
    "containers that may be root",
    two({ ...good, runAsNonRoot: undefined }, { ...good, runAsNonRoot: undefined }),
    'runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true)',
  ],
  [
    "restricted",
    "a pod that says it for its containers",
    two({ ...good, runAsNonRoot: undefined }, good, { runAsNonRoot: true }),
    "",
  ],
  [
    "restricted",
    "users",
    two({ ...good, runAsUser: 0 }, { ...good, runAsUser: 0 }, { runAsUser: 0 }),
    'runAsUser=0 (pod and containers "a", "b" must not set runAsUser=0)',
  ],
  ["restricted", "other users than root", two({ ...good, runAsUser: 1 }, good, { runAsUser: 7 }), ""],
  [
    "restricted",
    "other seccomp profiles",
    two(
      { ...good, seccompProfile: { type: "Unconfined" } },
      { ...good, seccompProfile: { type: "Other" } },
      { seccompProfile: { type: "Unconfined" } },
    ),
    'seccompProfile (pod and containers "a", "b" must not set securityContext.seccompProfile.type to "Other", "Unconfined")',
  ],
  [
    "restricted",
    "missing seccomp profiles",
    two({ ...good, seccompProfile: undefined }, { ...good, seccompProfile: undefined }),
    'seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ],
  [
    "restricted",
    "a pod's seccomp profile",
    two(
      { ...good, seccompProfile: undefined },
      { ...good, seccompProfile: { type: "Localhost" } },
      { seccompProfile: { type: "Localhost" } },
    ),
    "",
  ],
  [
    "restricted",
    "privilege escalation",
    two({ ...good, allowPrivilegeEscalation: undefined }, { ...good, allowPrivilegeEscalation: true }),
    'allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false)',
  ],
] as const) {
  test(`${level} names all that it forbids, and nothing else: ${name}`, () =>
    assert.equal(text(level, spec, name === "AppArmor profiles" ? withProfiles : {}), want));
}
