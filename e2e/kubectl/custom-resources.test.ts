/** Custom resources with kubectl and helm. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { isNotFound, kubectl, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

const columns = `
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}`;

const definition = (group: string): string => `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.${group}}
spec:
  group: ${group}
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true${columns}
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        description: A table of commands and times.
        type: object
        properties:
          spec:
            type: object
            description: What is to run when.
            required: [cronSpec]
            properties:
              cronSpec: {type: string, pattern: '^\\S+( \\S+){4}$'}
              replicas: {type: integer, minimum: 1, default: 2}
          status: {type: object, properties: {replicas: {type: integer}}}
`;

const cronTab = (group: string, spec: string): string => `
apiVersion: ${group}/v1
kind: CronTab
metadata: {name: one}
spec: ${spec}
`;

/** @returns the group, and kubectl in a namespace of the test */
async function defined(t: TestContext) {
  const namespace = await newNamespace(t, "custom");
  const group = `${namespace}.example.com`;
  t.after(() => tryKubectl(["delete", "crd", `crontabs.${group}`, "--wait=false"]));
  await kubectl("apply", "-f", "-", { input: definition(group) });
  await kubectl("wait", "--for=condition=Established", `crd/crontabs.${group}`, "--timeout=180s");
  const resource = `crontabs.${group}`;
  const inNamespace = (...args: Parameters<typeof kubectl>) => kubectl("-n", namespace, ...args);
  return { namespace, group, resource, run: inNamespace };
}

test("kubectl makes, shows, explains, scales, patches and deletes what a definition defines", async (t) => {
  const { namespace, group, resource, run } = await defined(t);
  await run("apply", "-f", "-", { input: cronTab(group, '{cronSpec: "* * * * *"}') });
  assert.match(await run("get", resource), /^NAME +SPEC +REPLICAS\none +\* \* \* \* \* +2$/m);
  await waitFor(
    "the description",
    async () => /What is to run when\.[\s\S]*replicas\s+<integer>/.test(await run("explain", `${resource}.spec`)),
    { retry: isNotFound }, // the API server has not published its schema yet
  );

  const misspelt = await tryKubectl(["-n", namespace, "apply", "-f", "-"], { input: cronTab(group, "{cronSpek: x}") });
  assert.match(misspelt.stderr, /unknown field "cronSpek"|cronSpec: Required value/);
  const refused = await tryKubectl(["-n", namespace, "apply", "-f", "-"], { input: cronTab(group, '{cronSpec: "*"}') });
  assert.match(refused.stderr, /spec\.cronSpec in body should match/);

  await run("scale", resource, "one", "--replicas=4");
  await run("patch", resource, "one", "--type=merge", "-p", '{"metadata":{"labels":{"kind":"cron"}}}');
  assert.equal(await run("get", resource, "-l", "kind=cron", "-o", "jsonpath={.items[0].spec.replicas}"), "4");

  const applied = cronTab(group, '{cronSpec: "1 1 1 1 1", replicas: 4}');
  await run("apply", "--server-side", "--force-conflicts", "-f", "-", { input: applied });
  assert.equal(await run("get", resource, "one", "-o", "jsonpath={.spec.cronSpec}"), "1 1 1 1 1");
  await run("delete", resource, "one");
  assert.equal(await run("get", resource, "-o", "name"), "");
});

test("a deleted namespace and a deleted definition take their custom resources along", async (t) => {
  const { namespace, group, resource, run } = await defined(t);
  await run("apply", "-f", "-", { input: cronTab(group, '{cronSpec: "* * * * *"}') });
  await kubectl("delete", "namespace", namespace, "--timeout=180s");
  assert.equal(await kubectl("get", resource, "-A", "-o", "name"), "");
  await kubectl("apply", "-n", "default", "-f", "-", { input: cronTab(group, '{cronSpec: "* * * * *"}') });
  await kubectl("delete", "crd", resource, "--timeout=180s");
  assert.match(
    (await tryKubectl(["get", resource, "-n", "default"])).stderr,
    /the server doesn't have a resource type|could not find the requested resource/,
  );
});
