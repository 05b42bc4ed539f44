import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiService, announcedGroups, isAvailable, serviceOf } from "./api-services.ts";
import { prioritiesOf } from "./priorities.ts";

function anApiService(group: string, version: string, groupPriorityMinimum: number, versionPriority: number): ApiService {
  return { metadata: { name: `${version}.${group}` }, spec: { group, version, groupPriorityMinimum, versionPriority } };
}

test("groups come by priority and then by name, versions by priority and then as versions go", () => {
  const services = [
    anApiService("", "v1", 18_000, 1),
    anApiService("b.example.com", "v1beta1", 1000, 100),
    anApiService("b.example.com", "v1", 1000, 100),
    anApiService("b.example.com", "v1alpha1", 1000, 100),
    anApiService("a.example.com", "v1", 1000, 100),
    anApiService("late.example.com", "v2", 10, 1),
    anApiService("late.example.com", "v1", 3000, 30),
    anApiService("apps", "v1", 17_800, 15),
  ];
  assert.deepEqual(announcedGroups(services), [
    { name: "apps", versions: ["v1"] },
    { name: "late.example.com", versions: ["v1", "v2"] },
    { name: "a.example.com", versions: ["v1"] },
    { name: "b.example.com", versions: ["v1", "v1beta1", "v1alpha1"] },
  ]);
});

test("a service is at port 443 unless it says another, and without one the group version is that of this server", () => {
  const spec = { group: "a", version: "v1", groupPriorityMinimum: 1, versionPriority: 1 };
  const at = (service: object | undefined) => serviceOf({ metadata: {}, spec: { ...spec, service } } as ApiService);
  assert.deepEqual(at({ namespace: "web", name: "api" }), { namespace: "web", name: "api", port: 443 });
  assert.deepEqual(at({ namespace: "web", name: "api", port: 8443 }), { namespace: "web", name: "api", port: 8443 });
  assert.equal(at(undefined), undefined);
});

test("available is what the condition of this type says, and nothing that has none", () => {
  const having = (...conditions: object[]) => isAvailable({ metadata: {}, status: { conditions } } as ApiService);
  const other = { type: "Other", status: "True" };
  assert.deepEqual(
    [
      having(),
      having(other),
      having(other, { type: "Available", status: "True" }),
      having({ type: "Available", status: "Unknown" }),
    ],
    [false, false, true, false],
  );
});

for (const { group, version, want } of [
  { group: "", version: "v1", want: [18_000, 1] },
  { group: "autoscaling", version: "v2beta2", want: [17_500, 1] },
  { group: "storage.k8s.io", version: "v1alpha1", want: [16_800, 1] },
  { group: "policy", version: "v1beta1", want: [17_100, 9] },
  { group: "apiregistration.k8s.io", version: "v1", want: undefined },
  { group: "example.com", version: "v1", want: undefined },
]) {
  test(`${group}/${version} stands at ${want}`, () => {
    const priorities = prioritiesOf({ group, version });
    assert.deepEqual(priorities && [priorities.groupPriorityMinimum, priorities.versionPriority], want);
  });
}
