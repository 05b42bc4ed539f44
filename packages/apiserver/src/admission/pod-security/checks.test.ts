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
