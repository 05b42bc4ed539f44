import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { readAppArmor } from "./app-armor.ts";

const prefix = "container.apparmor.security.beta.kubernetes.io/";

function aPod(annotations: Record<string, string>) {
  const pod = aNodePod({
    initContainers: [aContainer({ name: "init" })],
    containers: [aContainer({ name: "a" }), aContainer({ name: "b" })],
  });
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

function files(t: TestContext, enabled: string | undefined, profiles: string | undefined) {
  const dir = mkdtempSync(join(tmpdir(), "cox-apparmor-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const paths = { enabled: join(dir, "enabled"), profiles: join(dir, "profiles") };
  if (enabled !== undefined) writeFileSync(paths.enabled, enabled);
  if (profiles !== undefined) writeFileSync(paths.profiles, profiles);
  return paths;
}

const disabled = "AppArmor is not enabled on the host";
for (const { name, gate = true, enabled = "Y\n", profiles = "one (enforce)\nwith blank (x) (complain)\n", annotations, want } of [
  { name: "without profiles, on any machine", enabled: "N\n", annotations: { other: "localhost/one" }, want: undefined },
  { name: "unconfined, on any machine", enabled: "N\n", annotations: { [`${prefix}a`]: "unconfined" }, want: undefined },
  {
    name: "with a profile, on a machine that has it switched off",
    enabled: "N\n",
    annotations: { [`${prefix}a`]: "runtime/default" },
    want: disabled,
  },
  {
    name: "with a profile, on a kernel without it",
    enabled: null,
    annotations: { [`${prefix}a`]: "localhost/one" },
    want: disabled,
  },
  {
    name: "with a profile in a container beside an unconfined one, on a machine that has it switched off",
    enabled: "N\n",
    annotations: { [`${prefix}a`]: "unconfined", [`${prefix}b`]: "runtime/default" },
    want: disabled,
  },
  {
    name: "with a profile, without the feature gate",
    gate: false,
    annotations: { [`${prefix}a`]: "runtime/default" },
    want: "AppArmor disabled by feature-gate",
  },
  { name: "with the runtime's profile", annotations: { [`${prefix}a`]: "runtime/default" }, want: undefined },
  {
    name: "with loaded profiles",
    annotations: { [`${prefix}a`]: "localhost/one", [`${prefix}b`]: "localhost/with blank (x)" },
    want: undefined,
  },
  {
    name: "whose second container has an unknown one",
    annotations: { [`${prefix}a`]: "localhost/one", [`${prefix}b`]: "localhost/two" },
    want: 'profile "two" is not loaded',
  },
  {
    name: "whose init container has an unknown one",
    annotations: { [`${prefix}init`]: "localhost/with" },
    want: 'profile "with" is not loaded',
  },
] as {
  name: string;
  gate?: boolean;
  enabled?: string | null;
  profiles?: string;
  annotations: Record<string, string>;
  want: string | undefined;
}[]) {
  test(`a pod ${name} is ${want === undefined ? "allowed" : "refused"}`, async (t) => {
    const appArmor = await readAppArmor(gate, files(t, enabled ?? undefined, profiles));
    assert.equal(await appArmor.refusal(aPod(annotations)), want);
    assert.equal(appArmor.enabled, gate && enabled === "Y\n");
  });
}

test("a pod is allowed once its profile is loaded, and refused while the list of profiles cannot be read", async (t) => {
  const paths = files(t, "Y\n", undefined);
  const appArmor = await readAppArmor(true, paths);
  const pod = aPod({ [`${prefix}a`]: "localhost/one" });
  assert.match((await appArmor.refusal(pod)) ?? "", /^could not read loaded profiles: ENOENT/);
  writeFileSync(paths.profiles, "");
  assert.equal(await appArmor.refusal(pod), 'profile "one" is not loaded');
  writeFileSync(paths.profiles, "one (enforce)\n");
  assert.equal(await appArmor.refusal(pod), undefined);
});
